import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';
import { tempDir } from '@undertone/testing/app';
import { FORM_TYPE, fileForm } from '@undertone/testing/form';
import { TEST_MODELS } from '@undertone/testing/paths';
import { wav } from '@undertone/testing/wav';

const server = fileURLToPath(new URL('../..', import.meta.url));
const root = fileURLToPath(new URL('../../../..', import.meta.url));

/** A copy of the server without `compat/` and the one line of `app.ts` that registers it. */
async function copyWithoutCompat(): Promise<string> {
  const dir = await tempDir();
  const copy = join(dir, 'packages', 'server');
  await mkdir(copy, { recursive: true });
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
  await cp(join(server, 'package.json'), join(copy, 'package.json'));
  await cp(join(server, 'src'), join(copy, 'src'), { recursive: true });
  await rm(join(copy, 'src', 'compat'), { recursive: true });
  const app = join(copy, 'src', 'app.ts');
  const lines = (await readFile(app, 'utf8')).split('\n');
  const kept = lines.filter((line) => !line.includes('compat/'));
  assert.equal(lines.length - kept.length, 1);
  await writeFile(app, kept.join('\n'));
  return copy;
}

const copy = await copyWithoutCompat();

test('nothing else refers to compat/, and no type comes from it', async () => {
  const files = (await readdir(join(server, 'src'), { recursive: true })).filter((name) =>
    name.endsWith('.ts'),
  );
  const isCompat = (name: string) => name.startsWith('compat');
  const importing: string[] = [];
  for (const name of files) {
    const text = await readFile(join(server, 'src', name), 'utf8');
    if (!isCompat(name) && /['"][^'"]*compat\//.test(text)) importing.push(name);
    // What compat/ adds to the types of a library or to the globals, others would miss.
    if (isCompat(name)) assert.doesNotMatch(text, /^\s*declare (module|global)/m, name);
  }
  assert.deepEqual(importing, ['app.ts']);
  assert.ok(files.filter(isCompat).length > 3);
});

test('without compat/ the server classifies, and only the paths of other vendors are gone', async () => {
  const { createLogger, readSettings, startServer } = (await import(
    join(copy, 'src', 'index.ts')
  )) as typeof import('../../src/index.ts');
  const settings = readSettings({
    SERVICE_PORT: '0',
    SERVICE_WORKERS: '1',
    SERVICE_MODELS_DIR: TEST_MODELS,
    SERVICE_DATA_DIR: await tempDir(),
  });
  const running = await startServer(settings, createLogger('silent'));
  try {
    const headers = { 'x-api-key': String(running.firstKey) };
    const post = (path: string, seconds: number) =>
      fetch(running.url + path, {
        method: 'POST',
        headers: { ...headers, 'content-type': FORM_TYPE },
        body: fileForm(wav({ seconds })),
      });
    assert.equal((await post(PATHS.discrete, 5)).status, 200);
    const problem = (await (await post(PATHS.discrete, 1)).json()) as object;
    assert.ok('min_seconds' in problem && !('error_code' in problem));
    for (const path of [PATHS.models, `${PATHS.asynch}/requests`, PATHS.openapi, PATHS.docs]) {
      assert.equal((await fetch(running.url + path, { headers })).status, 200, path);
    }
    assert.equal((await post(PATHS.discreteShort, 5)).status, 404);
    for (const path of [`${PATHS.rateLimit}/status`, `${PATHS.socketIo}?EIO=4&transport=polling`]) {
      assert.equal((await fetch(running.url + path, { headers })).status, 404, path);
    }
  } finally {
    await running.stop();
  }
});
