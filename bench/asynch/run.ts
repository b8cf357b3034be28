// Long recordings (asynch): the whole request compared with copying plus the bare model, memory, and concurrent short recordings.
// With `--channels 2` instead: channels analysed separately compared with one channel.
import { parseArgs } from 'node:util';
import { API_KEY_HEADER, ASYNCH_LIMITS, ASYNCH_PATHS, formatTimestamp, PATHS } from '@undertone/contract';
import { startServerProcess } from '@undertone/testing/server-process';
import { BareModel } from '../support/bare-model.ts';
import { Client } from '../support/client.ts';
import { describeMachine, Limits, median, rounded } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';
import { Recording } from './recording.ts';
import { result, upload } from './upload.ts';

const LIMITS = { wholeRatio: 1.3, megabytes: 550, discreteRatio: 2, allSpeak: 1.05, oneSpeaks: 1.15 };
const BARE_WINDOWS = 100;
const DISCRETE_REQUESTS = 30;
const STEP_SECONDS = 5;
const ROUNDS = 3;

const { values } = parseArgs({
  options: {
    /** Sizes of the recordings, separated by commas. */
    mebibytes: { type: 'string', default: '60,1024' },
    /** At 192,000 Hz the same bytes have a quarter of the windows: faster, with more decoding per window. */
    rate: { type: 'string', default: '44100' },
    /** 2 or more: analyse the channels separately, and compare with one channel of the first size. */
    channels: { type: 'string', default: '1' },
  },
});
const [rate, channels] = [Number(values.rate), Number(values.channels)];

interface Run {
  readonly mebibytes: number;
  readonly windows: number;
  readonly copySeconds: number;
  readonly bareSeconds: number;
  readonly wholeSeconds: number;
  readonly ratio: number;
  readonly peakMegabytes: number;
}

const limits = new Limits();
console.log(
  `${describeMachine()}\n${rate} Hz, ${channels} channel(s), 16-bit WAV, in 5 MiB parts, 3 at a time\n`,
);
const sizes = values.mebibytes.split(',').map(Number);
const server = await startServerProcess();
try {
  if (channels > 1) await separateChannels(sizes[0] as number);
  else {
    const runs: Run[] = [];
    for (const mebibytes of sizes) runs.push(await measure(mebibytes));
    console.table(runs.map(roundedRow));
    for (const { mebibytes, ratio, peakMegabytes } of runs) {
      limits.atMost(`${mebibytes} MiB`, ratio, LIMITS.wholeRatio, ' times copy plus bare model');
      limits.atMost(`memory with ${mebibytes} MiB`, peakMegabytes, LIMITS.megabytes, ' MB');
    }
    await concurrentShortRecordings();
  }
} finally {
  await server.stop();
}
limits.conclude();

async function measure(mebibytes: number): Promise<Run> {
  const recording = new Recording(mebibytes, rate, channels);
  const before = await bareWindowsPerSecond();
  await server.peakMegabytes();
  const start = performance.now();
  const requestId = await upload(server, recording);
  const copySeconds = (performance.now() - start) / 1000;
  const { emotions } = await result(server, requestId);
  const wholeSeconds = (performance.now() - start) / 1000;
  const peakMegabytes = await server.peakMegabytes();
  const perSecond = (before + (await bareWindowsPerSecond())) / 2;
  checkElements(recording, emotions);
  const windows = emotions.length;
  const bareSeconds = windows / perSecond;
  const ratio = wholeSeconds / (copySeconds + bareSeconds);
  return { mebibytes, windows, copySeconds, bareSeconds, wholeSeconds, ratio, peakMegabytes };
}

/** Recordings of the same length: one channel, speech on all channels, and speech on one of them. */
async function separateChannels(mebibytes: number): Promise<void> {
  const kinds = {
    'one channel': new Recording(mebibytes, rate, 1),
    'all speak': new Recording(mebibytes * channels, rate, channels),
    'one speaks': new Recording(mebibytes * channels, rate, channels, 1),
  };
  const seconds: Record<keyof typeof kinds, number[]> = {
    'one channel': [],
    'all speak': [],
    'one speaks': [],
  };
  await server.peakMegabytes();
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of Object.keys(kinds) as (keyof typeof kinds)[]) {
      const start = performance.now();
      const { emotions } = await result(server, await upload(server, kinds[kind], { channels: 'separate' }));
      seconds[kind].push((performance.now() - start) / 1000);
      const heard = new Set(emotions.map(({ channel }) => channel)).size;
      const expected = kind === 'one channel' ? 1 : channels;
      if (heard !== expected) limits.miss(`${kind}: ${heard} channels instead of ${expected}`);
    }
  }
  const one = median(seconds['one channel']);
  const [all, single] = [median(seconds['all speak']) / one, median(seconds['one speaks']) / one];
  console.table({
    'one channel': { seconds: rounded(one), ratio: 1 },
    [`${channels} channels, all speak`]: {
      seconds: rounded(median(seconds['all speak'])),
      ratio: rounded(all),
    },
    [`${channels} channels, one speaks`]: {
      seconds: rounded(median(seconds['one speaks'])),
      ratio: rounded(single),
    },
  });
  limits.atMost('all speak', all, LIMITS.allSpeak * channels, ' times one channel');
  limits.atMost('one speaks', single, LIMITS.oneSpeaks, ' times one channel');
  limits.atMost('memory', await server.peakMegabytes(), LIMITS.megabytes, ' MB');
}

/** With as many threads as the server, just before and after it. */
async function bareWindowsPerSecond(): Promise<number> {
  const threads = await server.metric('undertone_inference_threads');
  const model = await BareModel.start(threads);
  const perSecond = await model.windowsPerSecond(Math.ceil(BARE_WINDOWS / threads));
  await model.close();
  return perSecond;
}

function checkElements({ seconds }: Recording, emotions: readonly { t: string }[]): void {
  const whole = Math.floor(seconds / STEP_SECONDS);
  const expected = whole + (seconds - whole * STEP_SECONDS >= ASYNCH_LIMITS.minTailSeconds ? 1 : 0);
  if (emotions.length !== expected) limits.miss(`${emotions.length} elements instead of ${expected}`);
  const last = emotions.at(-1)?.t;
  if (last !== formatTimestamp((expected - 1) * STEP_SECONDS)) limits.miss(`the last element is at ${last}`);
}

/** Short recordings have priority: how much does a long recording slow them down? */
async function concurrentShortRecordings(): Promise<void> {
  const client = new Client(server, { body: clipForm(STEP_SECONDS) });
  for (let i = 0; i < DISCRETE_REQUESTS; i++) await client.post();
  const idleMs = await medianPost(client);
  const requestId = await upload(server, new Recording(300, 44_100, 1));
  const busyMs = await medianPost(client);
  const headers = { [API_KEY_HEADER]: server.key };
  const asynch = server.url + PATHS.asynch;
  // Not the metric, which may be 10 s old.
  const polled = await fetch(`${asynch}${ASYNCH_PATHS.prediction}?request_id=${requestId}`, { headers });
  if (polled.status !== 202) limits.miss('the recording finished before the discrete requests');
  await client.close();
  await fetch(`${asynch}${ASYNCH_PATHS.requests}/${requestId}`, { method: 'DELETE', headers });
  const ratio = busyMs / idleMs;
  console.log(
    `Short recordings: ${rounded(idleMs)} ms idle, ${rounded(busyMs)} ms while a long one is processed: ` +
      `${rounded(ratio)} times (limit ${LIMITS.discreteRatio}).`,
  );
  limits.atMost('short recordings during a long one', ratio, LIMITS.discreteRatio, ' times the idle median');
}

async function medianPost(client: Client): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < DISCRETE_REQUESTS; i++) {
    const { status, ms } = await client.post();
    if (status !== 200) limits.miss(`a discrete request got ${status}`);
    times.push(ms);
  }
  return median(times);
}

function roundedRow(run: Run): Record<string, number> {
  return Object.fromEntries(Object.entries(run).map(([name, value]) => [name, rounded(value)]));
}
