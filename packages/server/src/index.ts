export { type AppOptions, buildApp } from './app.ts';
export { DATABASE_FILE, openDatabase } from './database.ts';
export type { Caller, KeyRecord, KeyStore } from './keys/key-store.ts';
export { SqliteKeyStore } from './keys/sqlite-key-store.ts';
export { createLogger } from './logger.ts';
export { main } from './main.ts';
export { toResult } from './prediction.ts';
export { LOG_LEVELS, readSettings, SETTINGS, type Settings, SettingsError } from './settings.ts';
export { type RunningServer, startServer } from './start.ts';
