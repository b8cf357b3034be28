// Measures the discrete interface against its own model and against many clients. See README.md.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { resampleAll } from '@undertone/audio';
import { DEFAULT_MODELS_DIR, pickWeights, readCatalog } from '@undertone/classifier';
import { Tensor } from 'onnxruntime-node';
import { openSession } from '../../packages/classifier/src/session.ts';
import { Client } from './client.ts';
import { FORM_TYPE, form, voiceLikeWav } from './clip.ts';
import { machine } from './machine.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

const LIMITS = { latencyRatio: 1.25, slowestMs: 5_000, megabytes: 700, loopMs: 50, fallTolerance: 0.95 };
const WARM_UP = { requests: 300, rounds: 20 };
const ROUNDS = 200;
/** Each number of clients has its turn so often, so that a slow minute of the machine does not fall on one of them. */
const LAPS = 5;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    clients: { type: 'string', default: '1,2,8,64,500' },
  },
});
const numbersOfClients = values.clients.split(',').map(Number);

interface Stage {
  clients: number;
  perSecond: number;
  medianMs: number;
  p99Ms: number;
  slowestMs: number;
  statuses: Record<string, number>;
  loopMaxMs: number;
  megabytes: number;
}

const wav = voiceLikeWav(5);
const server = await startServerProcess();
try {
  const latency = await compareWithModel(server);
  const stages: Stage[] = [];
  for (let lap = 0; lap < LAPS; lap++) {
    for (const clients of numbersOfClients) stages.push(await measure(server, clients));
  }
  report(
    latency,
    numbersOfClients.map((clients) => together(stages.filter((stage) => stage.clients === clients))),
  );
} finally {
  await server.stop();
}

/**
 * Takes turns between the model alone and whole requests, one after the other without a pause: a busy machine slows
 * both alike, and each finds the caches as the other left them. Before that the server has answered as many requests
 * as V8 needs to compile what a request runs: a service does not stay as young as a bench.
 */
async function compareWithModel({ url, key }: ServerProcess) {
  const { file } = pickWeights(await readCatalog(), 'research');
  const session = await openSession(join(DEFAULT_MODELS_DIR, file));
  const pcm = Float32Array.from(
    { length: (wav.length - 44) / 2 },
    (_, i) => wav.readInt16LE(44 + i * 2) / 32_768,
  );
  const samples = await resampleAll(pcm, 44_100);
  const input = { samples: new Tensor('float32', samples, [1, samples.length]) };
  const client = new Client({ url, key, type: FORM_TYPE, body: form(wav), connections: 1 });
  const modelMs: number[] = [];
  const requestMs: number[] = [];
  for (let i = 0; i < WARM_UP.requests; i++) await client.post();
  for (let i = 0; i < WARM_UP.rounds + ROUNDS; i++) {
    const start = performance.now();
    await session.run(input);
    const bare = performance.now() - start;
    const { status, ms } = await client.post();
    if (status !== 200) throw new Error(`status ${status}`);
    if (i < WARM_UP.rounds) continue;
    modelMs.push(bare);
    requestMs.push(ms);
  }
  client.close();
  await session.release();
  return {
    modelMs: median(modelMs),
    requestMs: median(requestMs),
    ratio: median(requestMs) / median(modelMs),
  };
}

async function measure(
  { url, key, metric, residentMegabytes }: ServerProcess,
  clients: number,
): Promise<Stage> {
  let megabytes = 0;
  const watch = setInterval(async () => {
    megabytes = Math.max(megabytes, await residentMegabytes());
  }, 200);
  const load = fileURLToPath(new URL('./load.ts', import.meta.url));
  const args = [load, '--url', url, '--key', key, '--clients', String(clients), '--seconds', values.seconds];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  clearInterval(watch);
  return {
    ...(JSON.parse(stdout) as Omit<Stage, 'loopMaxMs' | 'megabytes'>),
    loopMaxMs: (await metric('undertone_event_loop_delay_max_seconds')) * 1000,
    megabytes,
  };
}

/** The median of what wanders with the machine, the worst of what has a limit. */
function together(laps: Stage[]): Stage {
  const worst = (read: (stage: Stage) => number) => Math.max(...laps.map(read));
  const statuses: Record<string, number> = {};
  for (const [status, count] of laps.flatMap((lap) => Object.entries(lap.statuses))) {
    statuses[status] = (statuses[status] ?? 0) + count;
  }
  return {
    clients: laps[0]?.clients ?? 0,
    perSecond: median(laps.map((lap) => lap.perSecond)),
    medianMs: median(laps.map((lap) => lap.medianMs)),
    p99Ms: worst((lap) => lap.p99Ms),
    slowestMs: worst((lap) => lap.slowestMs),
    loopMaxMs: worst((lap) => lap.loopMaxMs),
    megabytes: worst((lap) => lap.megabytes),
    statuses,
  };
}

function report(latency: { modelMs: number; requestMs: number; ratio: number }, stages: Stage[]): void {
  console.log(`\n${machine()}\n5 s, 44.1 kHz, 16-bit mono WAV as a form\n`);
  console.log(
    `model alone ${latency.modelMs.toFixed(1)} ms, whole request ${latency.requestMs.toFixed(1)} ms: ${latency.ratio.toFixed(2)} times (limit ${LIMITS.latencyRatio})\n`,
  );
  console.table(
    stages.map(({ statuses, ...figures }) => ({
      ...Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Number(value.toFixed(1))])),
      statuses: JSON.stringify(statuses),
    })),
  );
  const failures = judge(latency.ratio, stages);
  console.log(JSON.stringify({ machine: machine(), latency, stages, failures }));
  for (const failure of failures) console.error(`MISSED: ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}

function judge(ratio: number, stages: Stage[]): string[] {
  const failures: string[] = [];
  if (ratio > LIMITS.latencyRatio)
    failures.push(`a request takes ${ratio.toFixed(2)} times the model's time`);
  let best = 0;
  for (const stage of stages) {
    const { clients, perSecond, statuses, slowestMs, megabytes, loopMaxMs } = stage;
    if (clients <= 64 && perSecond < best * LIMITS.fallTolerance) {
      failures.push(`throughput falls to ${perSecond.toFixed(1)}/s with ${clients} clients`);
    }
    best = Math.max(best, perSecond);
    const odd = Object.keys(statuses).filter((status) => !['200', '429', '503'].includes(status));
    if (odd.length > 0) failures.push(`${clients} clients saw ${odd.join(', ')}`);
    if (slowestMs > LIMITS.slowestMs)
      failures.push(`an answer took ${slowestMs.toFixed(0)} ms with ${clients} clients`);
    if (megabytes > LIMITS.megabytes) failures.push(`${megabytes.toFixed(0)} MB with ${clients} clients`);
    if (loopMaxMs > LIMITS.loopMs)
      failures.push(`the event loop was held ${loopMaxMs.toFixed(0)} ms (${clients} clients)`);
  }
  return failures;
}

function median(list: number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN;
}
