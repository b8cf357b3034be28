/** Every emotion of the shipped models, in the order of their outputs. */
export const EMOTIONS = ['angry', 'happy', 'neutral', 'sad', 'nervous', 'surprised', 'disgusted'] as const;

export type Emotion = (typeof EMOTIONS)[number];

/** Tells emotions apart where colour cannot. */
export const EMOTION_LETTERS: Record<Emotion, string> = {
  angry: 'A',
  happy: 'H',
  neutral: 'N',
  sad: 'S',
  nervous: 'V',
  surprised: 'U',
  disgusted: 'D',
};

/** Clients are advised to treat a prediction below this confidence as unsure. */
export const ADVISED_MIN_CONFIDENCE = 0.38;

/** The models, each with its emotions in the order of its output. */
export const MODELS = {
  '4emotions': ['angry', 'happy', 'neutral', 'sad'],
  '5emotions': ['angry', 'happy', 'neutral', 'sad', 'nervous'],
  '7emotions': ['angry', 'happy', 'neutral', 'sad', 'nervous', 'surprised', 'disgusted'],
} as const satisfies Record<string, readonly Emotion[]>;

export type ModelId = keyof typeof MODELS;

export const MODEL_IDS = Object.keys(MODELS) as readonly ModelId[];

export const DEFAULT_MODEL: ModelId = '4emotions';

export function isModelId(value: unknown): value is ModelId {
  return typeof value === 'string' && Object.hasOwn(MODELS, value);
}

/** The default weights; a server can use any weights in the model catalogue. */
export const DEFAULT_WEIGHTS = 'research';
