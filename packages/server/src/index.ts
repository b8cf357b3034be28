export { buildApp, type Services } from './app.ts';
export { composeServices, type RunningServer, startServer } from './compose.ts';
export { createLogger } from './logger.ts';
export { main } from './main.ts';
export { toResult } from './prediction.ts';
export { applyRuntimeFlags } from './runtime-flags.ts';
export { LOG_LEVELS, readSettings, SETTINGS, type Settings, SettingsError } from './settings.ts';
export type { Caller, KeyRecord, KeyStore } from './stores/key-store.ts';
export { DATABASE_FILE, openS3, openStores, type Stores } from './stores/open-stores.ts';
