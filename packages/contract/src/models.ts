import type { Emotion } from './emotions.ts';

/** The models a caller can choose, each with its emotions in the order of the model's output. */
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

/** The weights in use when none are chosen. Any that the catalogue of models names can be. */
export const DEFAULT_WEIGHTS = 'research';
