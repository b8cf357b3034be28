/** How long a store may take in tests that are about something else: the machine that runs them may be slow. */
export const LONG_TIMEOUT_MS = 60_000;

/** In tests of a store that does not answer: short enough to be waited for, long enough for one that is only slow. */
export const SHORT_TIMEOUT_MS = 3_000;
