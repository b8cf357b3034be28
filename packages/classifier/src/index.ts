export type { RecordingSource } from '@undertone/audio';
export {
  type Catalog,
  DEFAULT_MODELS_DIR,
  type Figures,
  type ModelEntry,
  pickWeights,
  readCatalog,
  verifyWeights,
  type WeightsEntry,
} from './catalog.ts';
export { Classifier, type ClassifierOptions, type Clip } from './classifier.ts';
export {
  ClosedError,
  ModelFilesError,
  NoThreadsError,
  OverloadedError,
  WorkerFailedError,
} from './errors.ts';
export {
  type ClipPrediction,
  MAX_WINDOW_SECONDS,
  MIN_WINDOW_SECONDS,
  type Models,
  type Prediction,
} from './prediction.ts';
export type { RecordingPrediction, Step } from './recording.ts';
export type { Priority } from './scheduler.ts';
export type { QueueStats } from './task-queue.ts';
