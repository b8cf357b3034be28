// Measures the asynch interface against its own model, its memory and its neighbours. See README.md.
import { parseArgs } from 'node:util';
import { formatTimestamp } from '@undertone/contract';
import { Client } from '../discrete/client.ts';
import { FORM_TYPE, form, voiceLikeWav } from '../discrete/clip.ts';
import { machine } from '../discrete/machine.ts';
import { type ServerProcess, startServerProcess } from '../discrete/server-process.ts';
import { secondsPerWindow } from './bare-model.ts';
import { Recording } from './recording.ts';
import { result, upload } from './upload.ts';

const LIMITS = { wholeRatio: 1.3, growth: 4 / 3, megabytes: 400, discreteRatio: 2 };
const BARE_WINDOWS = 100;
const DISCRETE_REQUESTS = 30;
const STEP_SECONDS = 5;

const { values } = parseArgs({ options: { megabytes: { type: 'string', default: '10,60' } } });

interface Run {
  megabytes: number;
  windows: number;
  copySeconds: number;
  wholeSeconds: number;
  bareSeconds: number;
  ratio: number;
  secondsPerMegabyte: number;
  residentMegabytes: number;
}

const failures: string[] = [];
const server = await startServerProcess();
try {
  const runs: Run[] = [];
  for (const megabytes of values.megabytes.split(',').map(Number))
    runs.push(await measure(server, megabytes));
  const discrete = await measureNeighbours(server);
  report(runs, discrete);
} finally {
  await server.stop();
}

async function measure(target: ServerProcess, megabytes: number): Promise<Run> {
  const recording = new Recording(megabytes);
  const threads = await target.metric('undertone_workers');
  let residentMegabytes = 0;
  const watch = setInterval(async () => {
    residentMegabytes = Math.max(residentMegabytes, await target.residentMegabytes());
  }, 100);
  const bareBefore = await secondsPerWindow(threads, BARE_WINDOWS);
  const start = performance.now();
  const requestId = await upload(target, recording);
  const copySeconds = (performance.now() - start) / 1000;
  const { emotions } = await result(target, requestId);
  const wholeSeconds = (performance.now() - start) / 1000;
  clearInterval(watch);
  const bareAfter = await secondsPerWindow(threads, BARE_WINDOWS);
  checkElements(recording, emotions);
  const windows = emotions.length;
  const bareSeconds = ((bareBefore + bareAfter) / 2) * windows;
  return {
    megabytes,
    windows,
    copySeconds,
    wholeSeconds,
    bareSeconds,
    ratio: wholeSeconds / (copySeconds + bareSeconds),
    secondsPerMegabyte: wholeSeconds / megabytes,
    residentMegabytes,
  };
}

function checkElements(recording: Recording, emotions: readonly { t: string }[]): void {
  const whole = Math.floor(recording.seconds / STEP_SECONDS);
  const expected = whole + (recording.seconds - whole * STEP_SECONDS >= 0.1 ? 1 : 0);
  const last = emotions.at(-1)?.t;
  if (emotions.length !== expected) failures.push(`${emotions.length} elements instead of ${expected}`);
  if (last !== formatTimestamp((expected - 1) * STEP_SECONDS))
    failures.push(`the last element is at ${last}`);
}

/** Discrete requests alone, then while a long recording is being processed. */
async function measureNeighbours(target: ServerProcess) {
  const body = form(voiceLikeWav(STEP_SECONDS));
  const client = new Client({ url: target.url, key: target.key, type: FORM_TYPE, body, connections: 1 });
  for (let i = 0; i < 5; i++) await client.post();
  const idleMs = await medianPost(client);
  const requestId = await upload(target, new Recording(150));
  const busyMs = await medianPost(client);
  const stillBusy = (await target.metric('undertone_asynch_requests{state="processing"}')) > 0;
  if (!stillBusy) failures.push('the recording was done before the discrete requests were');
  await fetch(`${target.url}/v1/asynch/requests/${requestId}`, {
    method: 'DELETE',
    headers: { 'x-api-key': target.key },
  });
  client.close();
  return { idleMs, busyMs, ratio: busyMs / idleMs };
}

async function medianPost(client: Client): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < DISCRETE_REQUESTS; i++) {
    const { status, ms } = await client.post();
    if (status !== 200) failures.push(`a discrete request was answered ${status}`);
    times.push(ms);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

function report(runs: readonly Run[], discrete: { idleMs: number; busyMs: number; ratio: number }): void {
  console.log(`\n${machine()}\n44.1 kHz, 16-bit mono WAV in 5 MiB parts\n`);
  const rounded = (run: Run) => Object.entries(run).map(([name, value]) => [name, Number(value.toFixed(3))]);
  console.table(runs.map((run) => Object.fromEntries(rounded(run))));
  console.log(
    `discrete median ${discrete.idleMs.toFixed(0)} ms idle, ${discrete.busyMs.toFixed(0)} ms while a recording is processed: ${discrete.ratio.toFixed(2)} times (limit ${LIMITS.discreteRatio})`,
  );
  for (const { megabytes, ratio, residentMegabytes } of runs) {
    if (ratio > LIMITS.wholeRatio)
      failures.push(`${megabytes} MB took ${ratio.toFixed(2)} times model and copy`);
    if (residentMegabytes > LIMITS.megabytes) failures.push(`${residentMegabytes.toFixed(0)} MB of memory`);
  }
  const [smallest] = runs;
  const growth = Math.max(...runs.map((run) => run.secondsPerMegabyte / (smallest?.secondsPerMegabyte ?? 1)));
  if (growth > LIMITS.growth)
    failures.push(`a megabyte costs ${growth.toFixed(2)} times as much in a larger file`);
  if (discrete.ratio > LIMITS.discreteRatio) failures.push('discrete requests are held up');
  console.log(JSON.stringify({ machine: machine(), runs, growth, discrete, failures }));
  for (const failure of failures) console.error(`MISSED: ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}
