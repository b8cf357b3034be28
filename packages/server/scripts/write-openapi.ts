// Writes docs/openapi.json from the routes of the real app, and docs/asyncapi.yaml from the schemas of streams.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATHS } from '@undertone/contract';
import { stringify } from 'yaml';
import { createLogger, readSettings, startServer } from '../src/index.ts';
import { asyncApi } from '../src/streams/asyncapi.ts';

const docs = new URL('../../../docs/', import.meta.url);
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-openapi-'));
const settings = readSettings({ SERVICE_PORT: '0', SERVICE_WORKERS: '1', SERVICE_DATA_DIR: dataDir });
const server = await startServer(settings, createLogger('warn'));
try {
  const document: unknown = await (await fetch(server.url + PATHS.openapi)).json();
  await writeFile(new URL('openapi.json', docs), `${JSON.stringify(document, null, 2)}\n`);
  await writeFile(new URL('asyncapi.yaml', docs), stringify(asyncApi(), { aliasDuplicateObjects: false }));
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true });
}
