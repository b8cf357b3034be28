import type { SettingName } from '../settings-flags.ts';
import { checkCores, checkFfmpeg, checkMemory, checkNode } from './machine.ts';
import { checkModelFiles, checkModelRuns } from './model.ts';
import { checkDataDir, checkDisk, checkPort } from './place.ts';

export type { CheckUp } from './check-up.ts';

export const FLAGS = [
  'host',
  'port',
  'dataDir',
  'weights',
  'modelsDir',
] as const satisfies readonly SettingName[];

/** In the order they are printed: what everything else rests on comes first. */
export const CHECKS = {
  node: checkNode,
  'model files': checkModelFiles,
  model: checkModelRuns,
  'data folder': checkDataDir,
  disk: checkDisk,
  port: checkPort,
  ffmpeg: checkFfmpeg,
  cores: checkCores,
  memory: checkMemory,
};
