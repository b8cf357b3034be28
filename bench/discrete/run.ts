// Short recordings (discrete): the whole request compared with the bare model, many clients, and the largest bodies.
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startServerProcess } from '@undertone/testing/server-process';
import { BareModel } from '../support/bare-model.ts';
import { Client } from '../support/client.ts';
import { checkHealth, type Health, watchHealth } from '../support/health.ts';
import { describeMachine, Limits, median, rounded } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';

const LIMITS = { latencyRatio: 1.3, shareOfCores: 0.75, crowdMegabytes: 600, largestMegabytes: 800 };
const CROWD = 500;
const LARGEST_BODIES = 64;
const ALLOWED = ['200', '429', '503'];
/** Gives V8 time to optimise, as in a long-running service. */
const WARM_UP_REQUESTS = 300;
const BARE_WINDOWS = 40;
/** The time until the first clients of a crowd are admitted or refused. */
const ARRIVAL_MS = 3_000;

const { values } = parseArgs({
  options: {
    /** Requests to compare with the bare model. */
    rounds: { type: 'string', default: '200' },
    /** Seconds per number of clients, after a warm-up. */
    seconds: { type: 'string', default: '5' },
    /** Measurements per number of clients, because about one in ten is slow on a shared machine. */
    repeat: { type: 'string', default: '5' },
    crowdSeconds: { type: 'string', default: '20' },
  },
});

interface Load {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly slowestMs: number;
  readonly statuses: Readonly<Record<string, number>>;
}

interface Crowd extends Load {
  readonly megabytes: number;
  /** While all clients connect and send at once, on the server's own cores. */
  readonly atArrival: Health;
  readonly health: Health;
}

const limits = new Limits();
console.log(`${describeMachine()}\n`);
const server = await startServerProcess();
try {
  await compareWithModel(Number(values.rounds));
  await shareOfTheCores(Number(values.repeat));
  await crowds();
} finally {
  await server.stop();
}
limits.conclude();

/** Alternates between the two, so that other load on the machine slows both equally. */
async function compareWithModel(rounds: number): Promise<void> {
  const model = await BareModel.start(1);
  const client = new Client(server, { body: clipForm() });
  const modelMs: number[] = [];
  const requestMs: number[] = [];
  for (let i = 0; i < WARM_UP_REQUESTS; i++) await client.post();
  for (let i = 0; i < rounds; i++) {
    modelMs.push(await model.windowMs());
    const { status, ms } = await client.post();
    if (status !== 200) limits.miss(`a single client got ${status}`);
    requestMs.push(ms);
  }
  await client.close();
  await model.close();
  const ratio = median(requestMs) / median(modelMs);
  console.log(
    `One client: a request takes ${rounded(median(requestMs))} ms, the bare model ${rounded(median(modelMs))} ms: ` +
      `${rounded(ratio)} times (limit ${LIMITS.latencyRatio}).\n`,
  );
  limits.atMost('a whole request', ratio, LIMITS.latencyRatio, ' times the bare model');
}

/** The clients run on the same cores, so their CPU time counts as overhead. */
async function shareOfTheCores(repeat: number): Promise<void> {
  const numbers = [1, 8, 64];
  const loads = new Map<number, Load[]>(numbers.map((clients) => [clients, []]));
  const bare: number[] = [];
  for (let i = 0; i < repeat; i++) {
    const model = await BareModel.start(availableParallelism());
    bare.push(await model.windowsPerSecond(BARE_WINDOWS));
    await model.close();
    for (const [clients, seen] of loads) seen.push(await load(clients, ['--seconds', values.seconds]));
  }
  const perSecond = (seen: readonly Load[]) => median(seen.map((one) => one.perSecond));
  const rows = [...loads].map(([clients, seen]) => ({
    clients,
    'responses/s': rounded(perSecond(seen)),
    'of the bare model': `${Math.round((100 * perSecond(seen)) / median(bare))} %`,
    'median ms': rounded(median(seen.map(({ medianMs }) => medianMs))),
    'slowest ms': rounded(Math.max(...seen.map(({ slowestMs }) => slowestMs))),
  }));
  console.log(
    `The bare model on ${availableParallelism()} threads: ${rounded(median(bare))} windows per second.`,
  );
  console.table(rows);
  for (const [clients, seen] of loads) for (const one of seen) checkStatuses(`${clients} clients`, one);
  limits.atLeast(
    'throughput with 8 clients, as a share of the bare model',
    perSecond(loads.get(8) ?? []) / median(bare),
    LIMITS.shareOfCores,
  );
}

async function crowds(): Promise<void> {
  const rows: Record<string, Crowd> = {};
  const crowd = `${CROWD} clients`;
  rows[crowd] = await watched(() => load(CROWD, ['--seconds', values.crowdSeconds]));
  checkHealth(limits, `with ${crowd}`, rows[crowd].health);
  limits.atMost(`memory with ${crowd}`, rows[crowd].megabytes, LIMITS.crowdMegabytes, ' MB');
  for (const kind of ['with a length', 'chunked']) {
    const what = `${LARGEST_BODIES} x 32 MiB ${kind}`;
    const flags = kind === 'chunked' ? ['--largest', '--chunked'] : ['--largest'];
    const seen = await watched(() => load(LARGEST_BODIES, flags));
    limits.atMost(`memory with ${what}`, seen.megabytes, LIMITS.largestMegabytes, ' MB');
    rows[what] = seen;
  }
  const table = Object.entries(rows).map(([what, { statuses, slowestMs, megabytes, atArrival, health }]) => ({
    what,
    answers: JSON.stringify(statuses),
    'slowest ms': rounded(slowestMs),
    'peak MB': rounded(megabytes),
    '/healthz ms on arrival': rounded(atArrival.slowestMs),
    '/healthz ms later': rounded(health.slowestMs),
  }));
  console.table(table);
  for (const [what, seen] of Object.entries(rows)) checkStatuses(what, seen);
}

async function watched(work: () => Promise<Load>): Promise<Crowd> {
  await server.peakMegabytes();
  const arrival = watchHealth(server.url);
  const working = work();
  await sleep(ARRIVAL_MS);
  const atArrival = await arrival.stop();
  const health = watchHealth(server.url);
  const seen = await working;
  return { ...seen, megabytes: await server.peakMegabytes(), atArrival, health: await health.stop() };
}

/** The clients run in a separate process. */
async function load(clients: number, flags: readonly string[]): Promise<Load> {
  const program = fileURLToPath(new URL('./load.ts', import.meta.url));
  const target = ['--url', server.url, '--key', server.key, '--clients', String(clients)];
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...target, ...flags]);
  return JSON.parse(stdout) as Load;
}

function checkStatuses(what: string, { statuses }: Load): void {
  const others = Object.entries(statuses).filter(([status]) => !ALLOWED.includes(status));
  for (const [status, count] of others) limits.miss(`${what}: ${status}, ${count} times`);
  if (!statuses['200']) limits.miss(`${what}: no request got 200`);
}
