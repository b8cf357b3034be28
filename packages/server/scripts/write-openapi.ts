// Writes docs/openapi.json from the routes of the real app.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATHS } from '@undertone/contract';
import { createLogger, readSettings, startServer } from '../src/index.ts';

const target = new URL('../../../docs/openapi.json', import.meta.url);
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-openapi-'));
const settings = readSettings({ SERVICE_PORT: '0', SERVICE_WORKERS: '1', SERVICE_DATA_DIR: dataDir });
const server = await startServer(settings, createLogger('warn'));
try {
  const document: unknown = await (await fetch(server.url + PATHS.openapi)).json();
  await writeFile(target, `${JSON.stringify(document, null, 2)}\n`);
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true });
}
