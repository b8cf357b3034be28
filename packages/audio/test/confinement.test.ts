import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeWav } from '@undertone/testing/wav';
import {
  type Confinement,
  confinements,
  findConfinement,
  SANDBOX_ERROR,
  type Sandbox,
} from '../src/ffmpeg/confinement.ts';
import { DecoderDiedError, Ffmpeg, findFfmpeg, memorySource } from '../src/index.ts';
import { collect, open, sine } from './support/sounds.ts';

const limits = { memoryBytes: 512 * 1024 ** 2, cpuSeconds: { clip: 1, recording: 3600 } };
const found = new Map<Sandbox, Confinement>();
let path: string;
let folder: string;
let recording: string;

before(async () => {
  path = (await findFfmpeg()) ?? assert.fail('the tests need ffmpeg');
  // Limits come first: the ones without are not looked at.
  for (const one of (await confinements(path, limits)).reverse()) found.set(one.sandbox, one);
  folder = await mkdtemp(join(tmpdir(), 'undertone-confined-'));
  recording = join(folder, 'voice.wav');
  await writeFile(recording, writeWav(sine(5, 16_000, 440)));
});
after(() => rm(folder, { recursive: true }));

/** Runs ffmpeg with other arguments, as if a recording had taken it over. */
async function run(sandbox: Sandbox, ...args: string[]) {
  const [program, ...rest] = confined(sandbox).command('clip', ['-nostdin', '-loglevel', 'error', ...args]);
  const child = spawn(program, rest, { env: {}, stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = [collect(child.stdout), collect(child.stderr)];
  const [code, signal] = await once(child, 'close');
  const bytes = (await output).reduce((sum: number, { length }) => sum + length, 0);
  return { code, signal, bytes, stderr: Buffer.concat(await errors).toString() };
}

function confined(sandbox: Sandbox): Confinement {
  return found.get(sandbox) ?? assert.fail(`${sandbox} is not installed`);
}

const TO_WAV = ['-f', 'wav', 'pipe:1'];

describe('ffmpeg, confined', () => {
  it('in the strictest way that works here: with bubblewrap and with limits', async () => {
    const { sandbox, limits } = await findConfinement(path);
    assert.deepEqual([sandbox, limits], ['bubblewrap', true]);
    assert.equal(await findConfinement(path), await findConfinement(path));
  });

  it('without a sandbox and limits where their programs are missing', async () => {
    const { PATH } = process.env;
    process.env['PATH'] = folder;
    try {
      const all = await confinements(path);
      assert.deepEqual(
        all.map(({ sandbox, limits }) => [sandbox, limits]),
        [['none', false]],
      );
    } finally {
      Object.assign(process.env, { PATH });
    }
  });

  it('with an empty environment', async () => {
    let env: NodeJS.ProcessEnv | undefined;
    const spying = ((...[program, args, options]: Parameters<typeof spawn>) => {
      env = options.env;
      return spawn(program, args, options);
    }) as typeof spawn;
    const flac = execFileSync(path, ['-loglevel', 'error', '-i', recording, '-f', 'flac', 'pipe:1']);
    (await open(memorySource(flac), new Ffmpeg({ spawn: spying }))).close();
    assert.deepEqual(env, {});
  });

  // The control: without a sandbox it can do all that the others must not.
  for (const sandbox of ['none', 'bubblewrap', 'unshare'] as const) {
    const can = sandbox === 'none' ? 'opens' : 'cannot open';

    it(`by ${sandbox}: ${can} a file`, async () => {
      const { bytes, stderr } = await run(sandbox, '-i', recording, ...TO_WAV);
      if (sandbox === 'none') assert.ok(bytes > 1000, stderr);
      else assert.match(stderr, /No such file or directory/);
    });

    it(`by ${sandbox}: ${can} a file that a playlist names`, async () => {
      const list = `ffconcat version 1.0\nfile file:${recording}\n`;
      const args = ['-protocol_whitelist', 'file,data', '-safe', '0', '-f', 'concat'];
      const url = `data:text/plain;base64,${Buffer.from(list).toString('base64')}`;
      const { bytes, stderr } = await run(sandbox, ...args, '-i', url, ...TO_WAV);
      if (sandbox === 'none') assert.ok(bytes > 1000, stderr);
      else assert.match(stderr, /Impossible to open|No such file or directory/);
    });

    it(`by ${sandbox}: ${can} a socket`, async () => {
      let connections = 0;
      const server = createServer((_, response) => response.end(readFileSync(recording)));
      server.on('connection', () => connections++).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const { bytes, stderr } = await run(sandbox, '-i', `http://127.0.0.1:${port}/voice.wav`, ...TO_WAV);
      server.close();
      assert.equal(connections > 0, sandbox === 'none', stderr);
      assert.equal(bytes > 1000, sandbox === 'none', stderr);
    });

    it(`by ${sandbox}: cannot write a file`, async () => {
      for (const target of [join(folder, `${sandbox}.wav`), `/usr/lib/undertone-${sandbox}.wav`]) {
        const { code } = await run(sandbox, '-f', 'lavfi', '-i', 'sine=d=1', target);
        assert.notEqual(code, 0);
        if (existsSync(target)) {
          assert.equal((await readFile(target)).length, 0);
          await rm(target);
        }
      }
    });

    it(`by ${sandbox}: leaves nothing behind when it is killed`, async () => {
      const { ffmpeg, recording } = await longRecording(sandbox);
      const { pieces } = await open(memorySource(recording), ffmpeg);
      assert.equal(ffmpegsBelow(process.pid).length, 1);
      for await (const _ of pieces) break;
      for (let tries = 0; ffmpegsBelow(process.pid).length > 0; tries++) {
        assert.ok(tries < 500, 'it still runs');
        await sleep(10);
      }
    });

    it(`by ${sandbox}: when it is killed itself, the recording is not damaged`, async () => {
      const { ffmpeg, recording } = await longRecording(sandbox);
      const { pieces } = await open(memorySource(recording), ffmpeg);
      const [own, ...others] = ffmpegsBelow(process.pid);
      assert.deepEqual(others, []);
      process.kill(own ?? 0, 'SIGKILL');
      await assert.rejects(collect(pieces), DecoderDiedError);
    });
  }

  for (const sandbox of ['none', 'bubblewrap'] as const) {
    it(`by ${sandbox}: does not get more memory than its limit`, async () => {
      // This filter keeps the whole recording in memory.
      const source = ['-f', 'lavfi', '-i', 'anullsrc=r=192000:cl=7.1', '-t', '9999', '-af', 'areverse'];
      const { code, bytes, stderr } = await run(sandbox, ...source, ...TO_WAV);
      assert.notEqual(code, 0);
      assert.ok(bytes < 1000);
      assert.match(stderr, /Cannot allocate memory/);
    });

    it(`by ${sandbox}: is killed when its CPU time is over`, async () => {
      const { code, signal, stderr } = await run(sandbox, '-f', 'lavfi', '-i', 'anullsrc', '-f', 'null', '-');
      // unshare cannot kill itself with the same signal, and says so.
      const isKilled = signal === 'SIGKILL' || code === 128 + 9 || SANDBOX_ERROR.test(stderr);
      assert.ok(isKilled, `${code} ${signal} ${stderr}`);
    });
  }

  it('by a sandbox that fails later: the recording is not damaged', async () => {
    const failing: Confinement = {
      ...confined('bubblewrap'),
      command: () => ['/bin/sh', '-c', 'echo "bwrap: Creating new namespace failed" >&2; exit 1'],
    };
    const reading = open(memorySource(Buffer.from('fLaC....')), new Ffmpeg({ confine: () => failing }));
    await assert.rejects(reading, DecoderDiedError);
  });
});

/** Ten minutes of sound, so that ffmpeg is in the middle of it. */
async function longRecording(sandbox: Sandbox): Promise<{ ffmpeg: Ffmpeg; recording: Buffer }> {
  const file = join(folder, 'long.flac');
  if (!existsSync(file)) {
    const source = 'anoisesrc=r=8000:a=0.1:d=600';
    const { status } = spawnSync(path, ['-loglevel', 'error', '-f', 'lavfi', '-i', source, file]);
    assert.equal(status, 0);
  }
  const bySandbox = new Map(
    (await confinements(path)).reverse().map((confinement) => [confinement.sandbox, confinement]),
  );
  const confinement = bySandbox.get(sandbox) ?? assert.fail(`${sandbox} is not installed`);
  return { ffmpeg: new Ffmpeg({ confine: () => confinement }), recording: await readFile(file) };
}

/** Running processes named ffmpeg among the descendants of a process. */
function ffmpegsBelow(ancestor: number): number[] {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    let stat = '';
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {}
    const [, command, parent] = /\((.*)\) [A-Y] (\d+)/.exec(stat) ?? [];
    parents.set(Number(name), Number(parent));
    if (command === 'ffmpeg') found.push(Number(name));
  }
  const descends = (pid: number): boolean =>
    pid === ancestor || (parents.has(pid) && descends(parents.get(pid) ?? 0));
  return found.filter(descends);
}
