/** Store timeout in tests of other things: the machine may be slow. */
export const LONG_TIMEOUT_MS = 60_000;

/** Store timeout in tests of a store that does not answer: short enough to wait for, long enough for a slow machine. */
export const SHORT_TIMEOUT_MS = 3_000;
