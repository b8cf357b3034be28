export const TOKEN_SCOPES = ['discrete', 'stream', 'all'] as const;

/** What a token may be used for: short recordings, live audio, or everything that hands out no other secret. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
