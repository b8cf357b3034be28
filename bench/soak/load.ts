// Ordinary load, as a process of its own: `startLoad` starts this file. It finds out what the server can do, then keeps it half
// busy with a mixture of everything. It prints what it did each time it is asked, and ends with its standard input.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { hostileRequest } from '@undertone/testing/hostile';
import { Random } from '@undertone/testing/random';
import { sendHostile } from '@undertone/testing/send-hostile';
import { encode } from '@undertone/testing/stream-audio';
import { StreamClient } from '@undertone/testing/stream-client';
import { voiceLike } from '../support/voice.ts';
import { CLIP_SECONDS, type ClipBody, clipBodies, recordings } from './sounds.ts';
import { type Lap, Tally } from './tally.ts';
import { Uploads } from './uploads.ts';

/** Shares of what the server can do, in windows of 5 s. Decoding and everything else come on top. */
const SHARES = { clips: 0.2, recordings: 0.15, streams: 0.1 };
const MEASURE_MS = 10_000;
const MAX_STREAMS = 50;
const STREAM_RATE = 16_000;
const FRAME_MS = 100;
const STREAM_SECONDS = { min: 10, max: 60 };
/** More under way means that the server cannot keep up. */
const AT_ONCE = 64;
const STOP_MS = 90_000;

interface Load {
  /** Windows of 5 s per second that the server answered at most. */
  readonly capacity: number;
  lap(): Promise<Lap>;
  /** Waits for what is under way. */
  stop(): Promise<Lap>;
}

/** Resolves when the load begins. */
export async function startLoad(url: string, key: string): Promise<Load> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), url, key], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const exit = once(child, 'exit');
  const next = async () => {
    const line = await lines.next();
    if (line.done) throw new Error('the load has ended');
    return JSON.parse(line.value);
  };
  return {
    capacity: await next(),
    lap: () => {
      child.stdin.write('\n');
      return next();
    },
    stop: async () => {
      child.stdin.end();
      const lap = await next();
      await exit;
      return lap;
    },
  };
}

if (import.meta.main) {
  // Its own work would not be on the server's cores.
  setPriority(10);
  const [url = '', key = ''] = process.argv.slice(2);
  const random = new Random(1);
  const clips = await clipBodies();
  const long = await recordings();
  const voice = encode(voiceLike(CLIP_SECONDS, STREAM_RATE));
  const uploads = await Uploads.start(url, key);
  const tally = new Tally();
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  const capacity = await measureCapacity();
  const windows = Math.max(...long.map((recording) => recording.windows));
  every(1_000 / (SHARES.clips * capacity), 'clips', (turn) => clip(clips[turn % clips.length] as ClipBody));
  every((1_000 * windows) / (SHARES.recordings * capacity), 'recordings', (turn) =>
    uploads.process(long[turn % long.length] as (typeof long)[0]),
  );
  const streams = Math.min(MAX_STREAMS, Math.ceil(SHARES.streams * capacity * CLIP_SECONDS));
  for (let i = 0; i < streams; i++) void keepTalking();
  every(2_000, 'bad bodies', badBody);
  every(10_000, 'lists', () => uploads.list());
  every(20_000, 'wrong keys', () => clip(clips[0] as ClipBody, 'a-key-that-is-wrong', 401));
  every(120_000, 'unreadable recordings', () => uploads.unreadable());
  every(60_000, 'abandoned uploads', () => uploads.abandoned(long[0] as (typeof long)[0]));

  console.log(capacity);
  const commands = createInterface(process.stdin);
  commands.on('line', () => console.log(JSON.stringify(tally.lap())));
  commands.once('close', async () => {
    stopping.abort();
    await Promise.race([Promise.all(running), sleep(STOP_MS)]);
    if (running.size > 0) tally.fail(`${running.size} calls did not end`);
    console.log(JSON.stringify(tally.lap()));
    process.exit();
  });

  async function measureCapacity(): Promise<number> {
    const until = performance.now() + MEASURE_MS;
    let answered = 0;
    const send = async () => {
      while (performance.now() < until) {
        const { status } = await post(clips[0] as ClipBody, key);
        if (status === 200) answered++;
      }
    };
    await Promise.all(Array.from({ length: 2 * availableParallelism() }, send));
    assert.ok(answered > 0, 'no short recording was answered');
    return (1_000 * answered) / MEASURE_MS;
  }

  /** Starts the work about this often, whether or not the last one has ended. */
  function every(ms: number, what: string, work: (turn: number) => Promise<void>): void {
    let underWay = 0;
    let turn = 0;
    const begin = () => {
      if (stopping.signal.aborted) return;
      setTimeout(begin, ms * (0.5 + random.next()));
      if (underWay >= AT_ONCE) return tally.fail(`${what}: ${AT_ONCE} are under way`);
      underWay++;
      track(what, work(turn++)).finally(() => underWay--);
    };
    setTimeout(begin, ms * random.next());
  }

  function track(what: string, work: Promise<void>): Promise<void> {
    const done = work
      .then(
        () => tally.count(what),
        (error: Error) => tally.fail(`${what}: ${error.message}`),
      )
      .finally(() => running.delete(done));
    running.add(done);
    return done;
  }

  async function clip(recording: ClipBody, withKey = key, expected = 200): Promise<void> {
    const start = performance.now();
    const { status, body } = await post(recording, withKey);
    assert.equal(status, expected, `${status} ${body}`);
    if (expected === 200) tally.clip(performance.now() - start);
  }

  async function post({ type, body }: ClipBody, withKey: string): Promise<{ status: number; body: string }> {
    const headers = { [API_KEY_HEADER]: withKey, 'content-type': type };
    const response = await fetch(url + PATHS.discrete, {
      method: 'POST',
      headers,
      body: body as Buffer<ArrayBuffer>,
    });
    return { status: response.status, body: await response.text() };
  }

  async function badBody(turn: number): Promise<void> {
    const request = hostileRequest(random, turn);
    const answer = await sendHostile(Number(new URL(url).port), key, request);
    assert.ok(answer === null || answer.status < 500, `${request.kind}: ${answer?.status} ${answer?.body}`);
  }

  async function keepTalking(): Promise<void> {
    // Otherwise all windows would complete at the same moment.
    await sleep(1_000 * CLIP_SECONDS * random.next());
    while (!stopping.signal.aborted) {
      await track('streams', talk());
      await sleep(1_000);
    }
  }

  /** One stream in real time. */
  async function talk(): Promise<void> {
    const seconds = random.integer(STREAM_SECONDS.min, STREAM_SECONDS.max);
    const client = new StreamClient(url, key, { sample_rate: STREAM_RATE });
    const open = once(client.socket, 'open');
    await Promise.race([open, client.closed.then(() => assert.fail('refused'))]);
    const frameBytes = (2 * STREAM_RATE * FRAME_MS) / 1_000;
    const begun = performance.now();
    let frame = 0;
    while (frame * FRAME_MS < seconds * 1_000 && !stopping.signal.aborted) {
      await sleep(Math.max(0, begun + frame * FRAME_MS - performance.now()));
      const at = (frame++ * frameBytes) % voice.length;
      client.send(voice.subarray(at, at + frameBytes));
    }
    const { code, reason } = await client.end();
    assert.equal(code, 1_000, `closed with ${code} ${reason}`);
    const expected = Math.floor((frame * FRAME_MS) / 1_000 / CLIP_SECONDS);
    assert.ok(client.predictions.length >= expected, `${client.predictions.length} answers of ${expected}`);
  }
}
