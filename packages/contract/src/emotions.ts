/** Every emotion any shipped model can name. The order is the order of the models' outputs. */
export const EMOTIONS = ['angry', 'happy', 'neutral', 'sad', 'nervous', 'surprised', 'disgusted'] as const;

export type Emotion = (typeof EMOTIONS)[number];

/** Below this confidence clients are advised, at their discretion, to drop an answer. */
export const ADVISED_MIN_CONFIDENCE = 0.38;
