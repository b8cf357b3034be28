/** What a token allows: short recordings, streams, or all that its key allows except making tokens. */
export const TOKEN_SCOPES = ['discrete', 'stream', 'all'] as const;

export type TokenScope = (typeof TOKEN_SCOPES)[number];
