export { buildApp } from './app.ts';
export { composeServices, type RunningServer, startServer } from './compose.ts';
export { createLogger, main } from './main.ts';
export { toResult } from './prediction.ts';
export type { Services } from './services.ts';
export { readSettings, SETTINGS, type Settings, SettingsError } from './settings.ts';
export type { ChangedKey, KeyRecord, OwnerUse } from './stores/contracts.ts';
export { DATABASE_FILE, openS3, openStores, type Stores } from './stores/index.ts';
export type { KeyLimits, LimitChanges } from './stores/key-limits.ts';
