export {
  type Catalog,
  DEFAULT_MODELS_DIR,
  type Figures,
  type ModelEntry,
  pickWeights,
  readCatalog,
  verifyWeights,
  type WeightsEntry,
  type WeightsName,
} from './catalog.ts';
export { Classifier, type ClassifierOptions, type ClassifierStats } from './classifier.ts';
export { ClosedError, ModelFilesError, OverloadedError, WorkerFailedError } from './errors.ts';
export { MAX_SECONDS, MIN_SECONDS, type Prediction, SAMPLE_RATE } from './prediction.ts';
export type { Priority } from './scheduler.ts';
