/** Every emotion of the shipped models, in the order of the models' outputs. */
export const EMOTIONS = ['angry', 'happy', 'neutral', 'sad', 'nervous', 'surprised', 'disgusted'] as const;

/** Every emotion a model can predict. */
export type Emotion = (typeof EMOTIONS)[number];

/** Clients are advised to treat a prediction below this confidence as unsure. */
export const ADVISED_MIN_CONFIDENCE = 0.38;

/** The models, each with its emotions in the order of its output. */
export const MODELS = {
  '4emotions': ['angry', 'happy', 'neutral', 'sad'],
  '5emotions': ['angry', 'happy', 'neutral', 'sad', 'nervous'],
  '7emotions': ['angry', 'happy', 'neutral', 'sad', 'nervous', 'surprised', 'disgusted'],
} as const satisfies Record<string, readonly Emotion[]>;

/** `5emotions` adds nervous; `7emotions` adds nervous, surprised and disgusted. */
export type ModelId = keyof typeof MODELS;

export const MODEL_IDS = Object.keys(MODELS) as readonly ModelId[];

export const DEFAULT_MODEL: ModelId = '4emotions';

export function isModelId(value: unknown): value is ModelId {
  return typeof value === 'string' && Object.hasOwn(MODELS, value);
}

/** The default weights; a server can use any weights in the model catalogue. */
export const DEFAULT_WEIGHTS = 'research';
