import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FlakyServer } from '@undertone/testing/flaky-server';
import { TEST_MODELS } from '@undertone/testing/paths';
import { startServerProcess } from '@undertone/testing/server-process';
import { output, start, temporaryFolder, undertone } from './support/undertone.ts';

const RECORDING = randomBytes(9 * 2 ** 20);
const BYTES = 120 * 2 ** 20;
const KILLS = 3;

async function setUp(t: TestContext) {
  const server = await FlakyServer.start();
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  const file = join(folder, 'talk.wav');
  await writeFile(file, RECORDING);
  const { apiKey, baseUrl } = server.settings;
  return { server, file, env: { SERVICE_API_KEY: apiKey, SERVICE_URL: baseUrl, XDG_STATE_HOME: folder } };
}

/** Sends the signal to an upload after two parts. */
async function interrupted(
  { server, file, env }: Awaited<ReturnType<typeof setUp>>,
  signal: NodeJS.Signals,
): Promise<{ ended: [number | null, NodeJS.Signals | null]; stderr: string }> {
  const child = start(['upload', file, '--resume'], { env });
  const before = server.calls('part').length;
  server.faults = ({ route }) => {
    return route === 'part' && server.calls('part').length > before + 2 ? { kind: 'hang' } : undefined;
  };
  const records = join(env.XDG_STATE_HOME, 'undertone', 'uploads');
  const isUnderWay = () =>
    [...server.uploads.values()].some(({ parts }) => parts.size >= 2) && existsSync(records);
  const waiting = setInterval(() => {
    if (!isUnderWay() || readdirSync(records).length === 0) return;
    // Only once: a second Ctrl-C would kill it.
    clearInterval(waiting);
    child.kill(signal);
  }, 10);
  const [stderr, [code, diedOf]] = await Promise.all([output(child.stderr), once(child, 'close')]);
  clearInterval(waiting);
  return { ended: [code, diedOf], stderr };
}

test('Ctrl-C keeps the sent parts and says how to continue; --resume sends the missing ones', async (t) => {
  const context = await setUp(t);
  const { server, file, env } = context;
  const { ended, stderr } = await interrupted(context, 'SIGINT');
  const [requestId = ''] = server.uploads.keys();
  assert.deepEqual(ended, [null, 'SIGINT'], 'it dies of the signal, so that a shell ends its loop');
  assert.match(
    stderr,
    /^undertone: Stopped at \d+ %\.\nContinue within 24 hours: the same command with --resume\.\n/m,
  );
  assert(stderr.includes(`\`undertone delete ${requestId}\``));
  const arrived = server.uploads.get(requestId)?.parts.size ?? 0;
  assert(arrived >= 1, 'something had arrived');
  server.faults = () => undefined;
  server.seen.length = 0;
  const resumed = await undertone(['upload', file, '--resume'], { env });
  assert.deepEqual([resumed.code, resumed.stdout], [0, `${requestId}\n`], resumed.stderr);
  assert.equal(server.calls('part').length, 5 - arrived);
  assert(server.assembled(requestId).equals(RECORDING));
  // Already complete: the same request ID, and nothing is sent.
  const again = await undertone(['upload', file, '--resume'], { env });
  assert.equal(again.stdout, `${requestId}\n`);
  assert.equal(server.calls('part').length, 5 - arrived);
});

test('a killed upload is found by the checksum of its file; another model starts a new upload', async (t) => {
  const context = await setUp(t);
  const { server, file, env } = context;
  await interrupted(context, 'SIGKILL');
  const [requestId = ''] = server.uploads.keys();
  server.faults = () => undefined;
  const renamed = join(file, '..', 'renamed.wav');
  await writeFile(renamed, RECORDING);
  const other = await undertone(['upload', renamed, '--resume', '--model', '7emotions'], { env });
  assert.notEqual(other.stdout, `${requestId}\n`);
  assert.equal((await undertone(['upload', renamed, '--resume'], { env })).stdout, `${requestId}\n`);
  server.uploads.clear();
  const expired = await undertone(['upload', file, '--resume'], { env });
  assert.equal(expired.code, 0);
  assert.match(expired.stderr, /has expired\. Starting again/);
});

test('an upload to the real server that is killed three times sends every part that arrived only once', async (t) => {
  const server = await startServerProcess({ SERVICE_WORKERS: '1', SERVICE_MODELS_DIR: TEST_MODELS });
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  const file = join(folder, 'talk.wav');
  await writeFile(file, randomBytes(BYTES));
  const env = { SERVICE_API_KEY: server.key, SERVICE_URL: server.url, XDG_STATE_HOME: folder };
  const arrived = () => server.metric('undertone_part_bytes_total');
  for (let kill = 1; kill <= KILLS; kill++) {
    const child = start(['upload', file, '--resume'], { env });
    const closed = once(child, 'close');
    while ((await arrived()) < (BYTES * kill) / (KILLS + 1)) await sleep(1);
    child.kill('SIGKILL');
    const [code] = await closed;
    assert.equal(code, null, 'it was killed before the end');
  }
  const { code, stdout, stderr } = await undertone(['upload', file, '--resume'], { env });
  assert.equal(code, 0, stderr);
  assert.equal(await arrived(), BYTES);
  const listed = await undertone(['list', '--json'], { env });
  const { requests } = JSON.parse(listed.stdout);
  assert.deepEqual(
    requests.map(({ request_id, status }: Record<string, string>) => [request_id, status !== 'uploading']),
    [[stdout.trim(), true]],
  );
});
