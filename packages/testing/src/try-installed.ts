import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { API_KEY_HEADER, type DiscreteResult, PATHS } from '@undertone/contract';
import { dieWithParent } from './die-with-parent.ts';
import { VOICES } from './paths.ts';
import { freePort, isReady } from './ready.ts';

const run = promisify(execFile);
const VOICE = join(VOICES, 'angry-1013.wav');

export interface Tried {
  readonly version: string;
  /** What `classify --json` printed. */
  readonly classified: string;
  /** What the server answered. */
  readonly answer: DiscreteResult;
  /** When it answered, as `performance.now()`. */
  readonly answeredAt: number;
  readonly page: string;
}

/** Uses an installed `undertone` as a new user does, with the given Node and an empty home folder. */
export async function tryInstalled(folder: string, node = process.execPath): Promise<Tried> {
  const program = join(folder, 'node_modules/.bin/undertone');
  const home = join(folder, 'home');
  await mkdir(home, { recursive: true });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const PATH = [dirname(node), '/usr/bin', '/bin'].join(':');
  const env = { PATH, HOME: home, SERVICE_PORT: String(port) };

  const server = spawn(...dieWithParent(program, ['serve']), { cwd: folder, env });
  const ended = once(server, 'close');
  let log = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (piece) => (log += piece));
  try {
    while (!(await isReady(url))) {
      assert.equal(server.exitCode, null, log);
      await sleep(50);
    }
    // The data of an installed package goes into the home folder. The file is written just after the server is ready.
    const keyFile = join(home, '.undertone/first-key');
    let key = '';
    while (key === '') {
      assert.equal(server.exitCode, null, log);
      [key = ''] = (await readFile(keyFile, 'utf8').catch(() => '')).split('\n');
      await sleep(20);
    }
    const body = new FormData();
    body.set('file', await openAsBlob(VOICE), 'voice.wav');
    const answered = await fetch(url + PATHS.discrete, {
      method: 'POST',
      headers: { [API_KEY_HEADER]: key },
      body,
    });
    assert.equal(answered.status, 200, log);
    const answer = (await answered.json()) as DiscreteResult;
    const answeredAt = performance.now();
    const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } }).then((found) => found.text());
    const version = await run(program, ['--version'], { cwd: folder, env });
    const classified = await run(program, ['classify', VOICE, '--json'], { cwd: folder, env });
    server.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null], log);
    return { version: version.stdout.trim(), classified: classified.stdout, answer, answeredAt, page };
  } finally {
    if (server.exitCode === null && server.signalCode === null) server.kill('SIGKILL');
    await ended;
  }
}
