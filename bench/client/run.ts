// Memory and speed of a large upload with the TypeScript client, beside bare HTTP; many short recordings with more
// concurrency than the server can take. See ../README.md.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { PATHS } from '@undertone/contract';
import { EmotionClient } from '@undertone/sdk';
import { startServerProcess } from '@undertone/testing/server-process';
import { build } from 'esbuild';
import { describeMachine, Limits } from '../support/report.ts';
import { compareConcurrency, type ManySeconds } from './many.ts';

const MIB = 2 ** 20;
const MAX_MIB = 150;
const MAX_CONCURRENCY_RATIO = 1.1;

interface Sent {
  readonly requestId: string;
  readonly seconds: number;
  readonly peakMiB: number;
}

const { values } = parseArgs({
  options: {
    mebibytes: { type: 'string', default: '300' },
    repeat: { type: 'string', default: '3' },
    /** `upload`, `many` or `all`. */
    part: { type: 'string', default: 'all' },
  },
});
const bytes = Number(values.mebibytes) * MIB;
const repeat = Number(values.repeat);
const run = promisify(execFile);
const limits = new Limits();
console.log(describeMachine());
if (values.part !== 'many') await measureUpload();
if (values.part !== 'upload') reportMany(await compareConcurrency(repeat));
limits.conclude();

async function measureUpload(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-bench-client-'));
  const server = await startServerProcess({ SERVICE_WORKERS: '1' });
  try {
    const path = join(folder, 'talk.wav');
    await writeRandom(path, bytes);
    await buildPrograms(folder);
    const best: Partial<Record<'client' | 'bare', Sent>> = {};
    for (let i = 0; i < repeat; i++) {
      for (const how of ['client', 'bare'] as const) {
        const sent = await send(server, folder, how, path);
        if (sent.seconds < (best[how]?.seconds ?? Number.POSITIVE_INFINITY)) best[how] = sent;
      }
    }
    report(best.client, best.bare);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Measures the built client, as users have it: running TypeScript takes tens of megabytes more. */
async function buildPrograms(folder: string): Promise<void> {
  const script = fileURLToPath(new URL('../../packages/sdk/scripts/build.ts', import.meta.url));
  await run(process.execPath, [script, join(folder, 'sdk')]);
  const entry = fileURLToPath(new URL('./send.ts', import.meta.url));
  await build({
    entryPoints: [entry],
    outfile: join(folder, 'send.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
}

/** Sends in a separate process, and deletes the request at once so that only the upload is measured. */
async function send(
  server: { url: string; key: string },
  folder: string,
  how: 'client' | 'bare',
  path: string,
): Promise<Sent> {
  const asynchUrl = server.url + PATHS.asynch;
  const program = join(folder, 'send.mjs');
  const library = join(folder, 'sdk/index.js');
  const { stdout } = await run(process.execPath, [
    program,
    how,
    path,
    String(bytes),
    library,
    server.key,
    asynchUrl,
  ]);
  const sent = JSON.parse(stdout) as Sent;
  await new EmotionClient({ apiKey: server.key, asynchUrl }).asynch.delete(sent.requestId);
  return sent;
}

function report(client: Sent | undefined, bare: Sent | undefined): void {
  if (!client || !bare) throw new Error('nothing was measured');
  const line = (name: string, { seconds, peakMiB }: Sent) =>
    `${name.padEnd(10)} ${seconds.toFixed(2).padStart(7)} s ${(bytes / MIB / seconds).toFixed(0).padStart(6)} MiB/s  peak ${peakMiB} MiB`;
  console.log(`${values.mebibytes} MiB, best of ${values.repeat}`);
  console.log(line('client', client));
  console.log(line('bare HTTP', bare));
  console.log(`ratio ${(client.seconds / bare.seconds).toFixed(2)}`);
  limits.atMost("the client's memory", client.peakMiB, MAX_MIB, ' MiB');
}

function reportMany({ four, sixteen, refused }: ManySeconds): void {
  console.log(`50 short recordings, best of ${repeat}, server with room for 7`);
  console.log(`concurrency 4   ${four.toFixed(2).padStart(7)} s`);
  console.log(`concurrency 16  ${sixteen.toFixed(2).padStart(7)} s, ${refused} refused`);
  console.log(`ratio ${(sixteen / four).toFixed(2)}`);
  limits.atMost('concurrency 16 beside 4', sixteen / four, MAX_CONCURRENCY_RATIO);
}

/** Random bytes: the server never decodes them. */
async function writeRandom(path: string, length: number): Promise<void> {
  const handle = await open(path, 'w');
  for (let left = length; left > 0; left -= MIB) await handle.write(randomBytes(Math.min(MIB, left)));
  await handle.close();
}
