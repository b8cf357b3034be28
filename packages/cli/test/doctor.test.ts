import assert from 'node:assert/strict';
import { access, copyFile, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { DEFAULT_MODELS_DIR } from '@undertone/classifier';
import { judgeFfmpeg, judgeFreeSpace } from '../src/checks.ts';
import { makeOwnModels } from './support/models.ts';
import { serve, temporaryFolder, undertone } from './support/undertone.ts';

test('a complete machine passes every check, and nothing is changed', async (t) => {
  const folder = await temporaryFolder(t);
  const dataDir = join(folder, 'data');
  const { code, stdout } = await undertone(['doctor', '--port', '0', '--data-dir', dataDir]);
  assert.equal(code, 0, stdout);
  for (const subject of ['node', 'model', 'data folder', 'disk', 'port', 'ffmpeg', 'cores', 'memory']) {
    assert.match(stdout, new RegExp(`^(ok|warning) +${subject} `, 'm'));
  }
  assert.match(stdout, /\nReady: `undertone serve`\.\n$/);
  assert.ok(!stdout.includes('\u001b'));
  await assert.rejects(access(dataDir));
  assert.deepEqual(await readdir(folder), []);
});

test('a missing ffmpeg is a warning that says how to install it', async (t) => {
  const { code, stdout } = await undertone(['doctor', '--port', '0'], {
    env: { PATH: await temporaryFolder(t) },
  });
  assert.equal(code, 0);
  assert.match(stdout, /^warning +ffmpeg .*only WAV/m);
  assert.match(stdout, /apt-get install ffmpeg/);
});

test('says how ffmpeg is confined, and what to do where it is not', async () => {
  const { stdout } = await undertone(['doctor', '--port', '0']);
  assert.match(stdout, /^ok +ffmpeg .*no network and no files \(bubblewrap\), limited memory and CPU time/m);
  const open = judgeFfmpeg('/usr/bin/ffmpeg', { sandbox: 'none', limits: false });
  assert.equal(open.state, 'warning');
  assert.match(open.found, /no sandbox, no limits on memory/);
  assert.match(open.fix ?? '', /apt-get install bubblewrap.*user namespaces/);
});

test('finds a damaged model, a used port and a data folder that is a file in one run', async (t) => {
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
  assert.match(stdout, /^error +model /m);
  assert.match(stdout, /has 10 bytes; catalog\.json states/);
  assert.match(stdout, /^error +data folder .*is not a folder/m);
  assert.match(stdout, /^error +port .*used by another program/m);
  assert.match(stdout, /\nFix 3 problems first\.\n$/);
});

test('a port that Undertone itself uses is ok', async (t) => {
  const dataDir = await temporaryFolder(t);
  const server = await serve(dataDir, ['--workers', '1']);
  const { code, stdout } = await undertone(['doctor', '--port', new URL(server.url).port]);
  await server.stop();
  assert.equal(code, 0);
  assert.match(stdout, /a server is already running/);
});

test('a nearly full disk is a warning or an error, and never shows 0.0 GiB', () => {
  const MIB = 1024 ** 2;
  for (const [bytes, state, found] of [
    [0, 'error', '0 MiB free'],
    [99 * MIB, 'error', '99 MiB free'],
    [100 * MIB, 'warning', '100 MiB free'],
    [2047 * MIB, 'warning', '2.0 GiB free'],
    [2048 * MIB, 'ok', '2.0 GiB free'],
  ] as const) {
    const finding = judgeFreeSpace(bytes);
    assert.deepEqual([finding.state, finding.found], [state, found]);
    assert.equal(finding.fix === undefined, state === 'ok');
  }
});

test('counts one problem in the singular, and FORCE_COLOR switches colour on', async (t) => {
  const env = { SERVICE_WEIGHTS: 'best', FORCE_COLOR: '1' };
  const { code, stdout } = await undertone(
    ['doctor', '--port', '0', '--data-dir', await temporaryFolder(t)],
    { env },
  );
  assert.equal(code, 1);
  assert.match(stdout, /\[31merror.\[39m +model .*\n.*There are no weights named "best"/);
  assert.match(stdout, /\[32mok.\[39m +node/);
  assert.match(stdout, /\nFix 1 problem first\.\n$/);
});

test('accepts any weights in the catalogue', async (t) => {
  const models = await makeOwnModels(await temporaryFolder(t));
  const { code, stdout } = await undertone([
    ...['doctor', '--port', '0', '--models-dir', models, '--weights', 'house'],
  ]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^ok +model +house weights/m);
});
