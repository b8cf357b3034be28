export { buildApp, type Services } from './app.ts';
export {
  composeServices,
  openS3,
  openStores,
  type RunningServer,
  type Stores,
  startServer,
} from './compose.ts';
export { createLogger } from './logger.ts';
export { main } from './main.ts';
export { toResult } from './prediction.ts';
export { applyRuntimeFlags } from './runtime-flags.ts';
export { LOG_LEVELS, readSettings, SETTINGS, type Settings, SettingsError } from './settings.ts';
export { DATABASE_FILE } from './stores/database.ts';
export type { Caller, KeyRecord, KeyStore } from './stores/key-store.ts';
