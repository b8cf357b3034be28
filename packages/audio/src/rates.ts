/** What the models hear. */
export const MODEL_SAMPLE_RATE = 16_000;

/** Below, too little of a voice is left; above, it is not a recording of one. */
export const LOWEST_SAMPLE_RATE = 8_000;
export const HIGHEST_SAMPLE_RATE = 192_000;
