import assert from 'node:assert/strict';
import { access, copyFile, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { DEFAULT_MODELS_DIR } from '@undertone/classifier';
import { serve, temporaryFolder, undertone } from './support/undertone.ts';

test('on a machine that has everything the doctor finds nothing to mend and changes nothing', async (t) => {
  const folder = await temporaryFolder(t);
  const dataDir = join(folder, 'data');
  const { code, stdout } = await undertone(['doctor', '--port', '0', '--data-dir', dataDir]);
  assert.equal(code, 0, stdout);
  for (const subject of ['node', 'model files', 'model', 'data folder', 'port', 'cores', 'memory']) {
    assert.match(stdout, new RegExp(`^[✓!] ${subject} `, 'm'));
  }
  assert.match(stdout, /Ready/);
  await assert.rejects(access(dataDir));
  assert.deepEqual(await readdir(folder), []);
});

test('without ffmpeg the doctor says what is lost and how to get it, and it is no failure', async (t) => {
  const { code, stdout } = await undertone(['doctor', '--port', '0'], {
    env: { PATH: await temporaryFolder(t) },
  });
  assert.equal(code, 0);
  assert.match(stdout, /^! ffmpeg .*only WAV/m);
  assert.match(stdout, /apt-get install ffmpeg/);
});

test('a damaged model, a taken port and a data folder that is a file are all found in one go', async (t) => {
  const folder = await temporaryFolder(t);
  await copyFile(join(DEFAULT_MODELS_DIR, 'catalog.json'), join(folder, 'catalog.json'));
  await writeFile(join(folder, 'research.onnx'), 'half of it');
  const other = createServer((_, response) => response.end('another program'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const { code, stdout } = await undertone([
    ...['doctor', '--models-dir', folder, '--port', String(port)],
    ...['--data-dir', join(folder, 'catalog.json')],
  ]);
  assert.equal(code, 1);
  assert.match(stdout, /^✗ model files/m);
  assert.match(stdout, /10 bytes where catalog\.json says/);
  assert.match(stdout, /^✗ model {8}/m);
  assert.match(stdout, /^✗ data folder .*ENOTDIR/m);
  assert.match(stdout, /^✗ port .*taken by another program/m);
  assert.match(stdout, /4 to mend first/);
});

test('a port where Undertone itself runs is no fault', async (t) => {
  const dataDir = await temporaryFolder(t);
  const server = await serve(dataDir, ['--workers', '1']);
  const { code, stdout } = await undertone(['doctor', '--port', new URL(server.url).port]);
  await server.stop();
  assert.equal(code, 0);
  assert.match(stdout, /a server runs already/);
});
