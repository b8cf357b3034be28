import { execFile } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { PATHS } from '@undertone/contract';
import { EmotionClient } from '@undertone/sdk';
import { build } from 'esbuild';
import { describeMachine } from '../support/report.ts';
import { startServerProcess } from '../support/server-process.ts';

const MIB = 2 ** 20;
const MOST_MIB = 150;

interface Sent {
  readonly requestId: string;
  readonly seconds: number;
  readonly peakMiB: number;
}

const { values } = parseArgs({
  options: {
    mebibytes: { type: 'string', default: '300' },
    repeat: { type: 'string', default: '3' },
  },
});
const bytes = Number(values.mebibytes) * MIB;
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'undertone-bench-client-'));
const server = await startServerProcess({ env: { SERVICE_WORKERS: '1' } });
try {
  const path = join(folder, 'talk.wav');
  await writeScrambled(path, bytes);
  await buildPrograms();
  const best: Partial<Record<'client' | 'bare', Sent>> = {};
  for (let i = 0; i < Number(values.repeat); i++) {
    for (const how of ['client', 'bare'] as const) {
      const sent = await send(how, path);
      if (sent.seconds < (best[how]?.seconds ?? Number.POSITIVE_INFINITY)) best[how] = sent;
    }
  }
  report(best.client, best.bare);
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Built, as users have it: running TypeScript takes tens of megabytes more. */
async function buildPrograms(): Promise<void> {
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

/** In a process of its own; the request is deleted at once, so that only the sending is measured. */
async function send(how: 'client' | 'bare', path: string): Promise<Sent> {
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
  console.log(describeMachine());
  console.log(`${values.mebibytes} MiB, best of ${values.repeat}`);
  console.log(line('client', client));
  console.log(line('bare HTTP', bare));
  console.log(`ratio ${(client.seconds / bare.seconds).toFixed(2)}`);
  if (client.peakMiB > MOST_MIB) {
    console.error(`The client's memory passed ${MOST_MIB} MiB.`);
    process.exitCode = 1;
  }
}

/** Bytes that differ from place to place; nobody listens to them. */
async function writeScrambled(path: string, length: number): Promise<void> {
  const piece = new Uint32Array(MIB / 4);
  const handle = await open(path, 'w');
  for (let at = 0, state = 1; at < length; at += MIB) {
    for (let i = 0; i < piece.length; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      piece[i] = state;
    }
    await handle.write(new Uint8Array(piece.buffer, 0, Math.min(MIB, length - at)));
  }
  await handle.close();
}
