import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  type AudioError,
  decodeBlock,
  Ffmpeg,
  memorySource,
  type RecordingSource,
  resampleAll,
} from '@undertone/audio';
import { writeWav } from '@undertone/testing/wav';
import fc from 'fast-check';
import { NoThreadsError, type RecordingPrediction } from '../src/index.ts';
import type { Task } from '../src/protocol.ts';
import { classifyRecording, type RecordingOptions } from '../src/recording.ts';
import { TaskQueue } from '../src/task-queue.ts';
import { copyModels } from './support/models-dir.ts';
import { vowels } from './support/sounds.ts';
import { kill, start, until } from './support/threads.ts';

const RATE = 16_000;

/** A WAV in which all samples of second n are n / 1000. */
const countingWav = (seconds: number): Buffer =>
  writeWav(
    Float32Array.from({ length: Math.round(seconds * RATE) }, (_, i) => Math.floor(i / RATE) / 1000),
    { sampleRate: RATE, encoding: 'float32' },
  );
const secondOf = (samples: Float32Array): number => Math.round((samples[0] ?? 0) * 1000);

const flat = { models: { m: { angry: 0.75, happy: 0.25 } as Record<string, number> }, speechSeconds: 1 };

interface RunOptions extends Partial<RecordingOptions> {
  threads?: number;
  classify?: (samples: Float32Array, signal: AbortSignal) => Promise<typeof flat>;
}

/** Everything but the model and its threads is real. */
function run(
  source: RecordingSource,
  { threads = 2, classify = async () => flat, ...options }: RunOptions,
): Promise<RecordingPrediction> {
  const queue = {
    stats: () => ({ threads }),
    run: async (task: Task, { signal }: { signal: AbortSignal }) => ({
      output:
        task.kind === 'decode'
          ? { channels: decodeBlock(task) }
          : await classify(task.data as Float32Array, signal),
    }),
  } as unknown as TaskQueue;
  const ffmpeg = new Ffmpeg({ path: null });
  return classifyRecording(source, { stepSeconds: 5, maxSeconds: 600, ...options }, { queue, ffmpeg });
}

describe('steps of a long recording', () => {
  test('there is one per started step, for any length', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 500, max: 8_000 }),
        async (stepSeconds, centiseconds) => {
          const seconds = centiseconds / 100;
          const wav = writeWav(new Float32Array(centiseconds * 80), { sampleRate: 8000, encoding: 'pcm8' });
          const found = await run(memorySource(wav), { stepSeconds });
          assert.deepEqual([found.seconds, found.sampleRate, found.channels], [seconds, 8000, 1]);
          const whole = Math.floor(seconds / stepSeconds);
          const tail = Number((seconds - whole * stepSeconds).toFixed(6));
          assert.equal(found.steps.length, whole + (tail >= 0.1 ? 1 : 0));
          for (const [i, { startSeconds, endSeconds }] of found.steps.entries()) {
            assert.equal(startSeconds, i * stepSeconds);
            assert.equal(endSeconds, Math.min((i + 1) * stepSeconds, seconds));
          }
        },
      ),
      { seed: 7, numRuns: 30 },
    );
  });

  test('stay in order when results arrive out of order', async () => {
    const held = new Map<number, () => void>();
    const { steps } = await run(memorySource(countingWav(40)), {
      threads: 3,
      classify: (samples) => {
        const second = secondOf(samples);
        return new Promise((resolve) => {
          held.set(second, () => resolve({ models: { m: { happy: second } }, speechSeconds: 1 }));
          if (held.size < 4) return;
          // Four are in flight: answer the last one first.
          for (const answer of [...held.values()].toReversed()) answer();
          held.clear();
        });
      },
    });
    assert.deepEqual(
      steps.flatMap(({ models }) => Object.values(models).flatMap((emotions) => Object.values(emotions))),
      [0, 5, 10, 15, 20, 25, 30, 35],
    );
  });

  test('few are in flight, and reading ahead is bounded', async () => {
    const wav = countingWav(150);
    let read = 0;
    let inFlight = 0;
    let most = 0;
    let answered = 0;
    const source = {
      size: wav.length,
      async *read(from = 0, to = wav.length) {
        for (let at = from; at < to; at += 10_000) {
          read = at / 4 / RATE;
          // Three windows in flight, one waiting, the current block and the next one, 20 s each.
          assert.ok(read <= (answered + 4) * 5 + 41, `${read} s read with ${answered} windows answered`);
          yield wav.subarray(at, Math.min(at + 10_000, to));
        }
      },
    };
    await run(source, {
      classify: async () => {
        most = Math.max(most, ++inFlight);
        await new Promise((resolve) => setImmediate(resolve));
        inFlight--;
        answered++;
        return flat;
      },
    });
    assert.equal(answered, 30);
    assert.equal(most, 3);
  });

  test('longer than 10 s: probabilities are the mean of equal windows, speech is the sum', async () => {
    const lengths: number[] = [];
    const { steps } = await run(memorySource(countingWav(50)), {
      stepSeconds: 25,
      classify: async (samples) => {
        lengths.push(samples.length);
        const high = secondOf(samples) % 25 === 0;
        return { models: { m: { angry: high ? 0.9 : 0.3, happy: high ? 0.1 : 0.7 } }, speechSeconds: 2 };
      },
    });
    assert.equal(lengths.length, 6);
    assert.ok(lengths.every((length) => Math.abs(length - (25 * RATE) / 3) <= 1));
    const models = { m: { angry: 0.5, happy: (0.1 + 0.7 + 0.7) / 3 } };
    assert.deepEqual(steps, [
      { channel: 0, startSeconds: 0, endSeconds: 25, speechSeconds: 6, models },
      { channel: 0, startSeconds: 25, endSeconds: 50, speechSeconds: 6, models },
    ]);
  });

  test('the last one counts only its own share of the speech when its window reaches back', async () => {
    const { steps } = await run(memorySource(countingWav(12)), {
      classify: async () => ({ ...flat, speechSeconds: 5 }),
    });
    assert.deepEqual(
      steps.map(({ speechSeconds }) => speechSeconds),
      [5, 5, 2],
    );
  });

  test('a recording that is too short is refused; one that is too long is refused without reading the rest', async () => {
    await assert.rejects(run(memorySource(countingWav(4.9)), {}), {
      code: 'audio_too_short',
      figures: { min_seconds: 5, actual_seconds: 4.9 },
    });
    assert.equal((await run(memorySource(countingWav(4.96)), {})).steps.length, 1);
    const header = writeWav([], { sampleRate: 8000, encoding: 'pcm8', dataSize: 0xffff_ffff });
    let read = 0;
    const endless = {
      size: Infinity,
      async *read() {
        yield header;
        for (;;) {
          read += 10;
          yield new Uint8Array(80_000);
        }
      },
    };
    await assert.rejects(run(endless, {}), { code: 'audio_too_long', figures: { max_seconds: 600 } });
    assert.ok(read < 700, `${read} s read`);
  });

  test('a result with too many elements is refused, and the error names an interval that fits', async () => {
    const wav = countingWav(90);
    const source = memorySource(wav);
    await assert.rejects(run(source, { stepSeconds: 1, maxElements: 60 }), {
      code: 'result_too_large',
      message: 'One prediction every 1 s makes more than 60 predictions. Use interval=10 or more.',
      figures: { max_elements: 60, interval: 1, min_interval: 10, channels: 1 },
    });
    const { steps } = await run(memorySource(wav), { stepSeconds: 10, maxElements: 60 });
    assert.equal(steps.length, 9);
  });

  test('the first failure aborts the others and closes the source', async () => {
    const wav = countingWav(90);
    let closed = false;
    let started = 0;
    let stopped = 0;
    const watched = {
      size: wav.length,
      async *read() {
        try {
          yield* memorySource(wav).read();
        } finally {
          closed = true;
        }
      },
    };
    const failing = run(watched, {
      threads: 3,
      classify: (samples, signal) => {
        started++;
        if (secondOf(samples) === 10) return Promise.reject(new Error('this window'));
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            stopped++;
            reject(signal.reason);
          });
        });
      },
    });
    await assert.rejects(failing, { message: 'this window' });
    assert.ok(closed);
    assert.equal(stopped, started - 1, 'all others in flight were aborted');
    assert.ok(started >= 3 && started <= 4, `${started}`);
  });

  test('an abort rejects with its reason, even while the source hangs', async () => {
    const wav = countingWav(30);
    const hanging = {
      size: wav.length,
      async *read() {
        yield wav.subarray(0, 100_000);
        await new Promise(() => undefined);
      },
    };
    for (const source of [hanging, memorySource(wav)]) {
      const abort = new AbortController();
      const running = run(source, {
        signal: abort.signal,
        classify: (_samples, signal) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      });
      setImmediate(() => abort.abort(new Error('not wanted')));
      await assert.rejects(running, { message: 'not wanted' });
    }
  });
});

describe('a long recording with the real model', () => {
  const samples = vowels(58.3, 140, 44_100);
  const wav = writeWav(samples, { encoding: 'float32', channels: 2 });

  /** The WAV in pieces, with an event after 30 s of sound. */
  const withEvent = (event: () => unknown): RecordingSource => ({
    size: wav.length,
    async *read(from = 0, to = wav.length) {
      let happened = false;
      for (let at = from; at < to; at += 65_536) {
        if (at > 30 * 44_100 * 8 && !happened) {
          happened = true;
          await event();
        }
        yield wav.subarray(at, Math.min(at + 65_536, to));
      }
    },
  });

  test('gives the same results as its windows one by one', async (t) => {
    const { classifier } = await start(t, { workers: 2 });
    const shares: number[] = [];
    const { steps, seconds, sampleRate, channels } = await classifier.classifyRecording(
      withEvent(() => 0),
      {
        stepSeconds: 5,
        onProgress: (share) => shares.push(share),
      },
    );
    assert.deepEqual([seconds, sampleRate, channels, steps.length], [58.3, 44_100, 2, 12]);
    assert.deepEqual(
      shares,
      shares.toSorted((a, b) => a - b),
    );
    assert.equal(shares.at(-1), 1);
    const resampled = resampleAll(samples, 44_100);
    for (const [i, step] of steps.entries()) {
      const end = Math.min((i + 1) * 5 * RATE, resampled.length);
      const window = resampled.slice(end - 5 * RATE, end);
      const { models } = await classifier.classifyWindow(window, { priority: 'discrete' });
      assert.deepEqual(step.models, models);
    }
  });

  test('channels=separate gives each channel its own results; silence costs one inference', async (t) => {
    const { classifier } = await start(t, { workers: 2 });
    const [left, silent] = [samples.subarray(0, 23 * 44_100), new Float32Array(23 * 44_100)];
    const alone = await classifier.classifyRecording(memorySource(writeWav(left)), { stepSeconds: 5 });
    const silence = await classifier.classifyRecording(memorySource(writeWav(silent)), { stepSeconds: 5 });
    const stereo = writeWav(left, { channels: 2 });
    for (let at = 46; at < stereo.length; at += 4) stereo.writeInt16LE(0, at);
    const tasks = t.mock.method(TaskQueue.prototype, 'run').mock;
    const { steps, channels } = await classifier.classifyRecording(memorySource(stereo), {
      stepSeconds: 5,
      channels: 'separate',
    });
    assert.deepEqual([channels, steps.length], [2, 10]);
    for (const channel of [0, 1]) {
      const expected = (channel === 0 ? alone : silence).steps.map((step) => ({ ...step, channel }));
      assert.deepEqual(
        steps.filter((step) => step.channel === channel),
        expected,
      );
    }
    assert.deepEqual(
      steps.map(({ startSeconds, channel }) => [startSeconds, channel]),
      [0, 5, 10, 15, 20].flatMap((start) => [0, 1].map((channel) => [start, channel])),
    );
    const inferences = tasks.calls.filter(({ arguments: [task] }) => (task as Task).kind === 'window');
    assert.equal(inferences.length, 5 + 1);
  });

  test('too many channels to analyse separately are refused with both numbers', async () => {
    const many = memorySource(writeWav(new Float32Array(50_000), { sampleRate: 8000, channels: 9 }));
    await assert.rejects(run(many, { channels: 'separate' }), (error: AudioError) => {
      assert.deepEqual(error.figures, { max_channels: 8, actual_channels: 9 });
      return error.code === 'unreadable_audio' && /9 channels/.test(error.message);
    });
    await run(many, { channels: 'mix' });
  });

  test('the loss of a thread does not change the result', async (t) => {
    const { classifier, threads } = await start(t, { workers: 2 });
    const expected = await classifier.classifyRecording(memorySource(wav), { stepSeconds: 5 });
    const found = await classifier.classifyRecording(
      withEvent(() => kill(threads()[0])),
      { stepSeconds: 5 },
    );
    assert.deepEqual(found, expected);
    assert.equal(classifier.stats().restarts, 1);
  });

  test('waits while no thread can be started, continues when one is back, and stops on abort', async (t) => {
    const { modelsDir, takeAway, restore } = await copyModels(t);
    const { classifier, threads } = await start(t, { workers: 1, modelsDir });
    const expected = await classifier.classifyRecording(memorySource(wav), { stepSeconds: 10 });
    const loseThread = withEvent(async () => {
      await takeAway();
      for (const thread of threads()) kill(thread);
    });
    const running = classifier.classifyRecording(loseThread, { stepSeconds: 10 });
    const window = () => classifier.classifyWindow(samples.slice(0, RATE), { priority: 'discrete' });
    await until(() => classifier.stats().alive === 0, 'the loss of the only thread');
    await assert.rejects(window(), NoThreadsError);

    const abort = new AbortController();
    const unwanted = classifier.classifyRecording(memorySource(wav), {
      stepSeconds: 10,
      signal: abort.signal,
    });
    setImmediate(() => abort.abort(new Error('deleted')));
    await assert.rejects(unwanted, { message: 'deleted' });
    assert.equal(classifier.stats().alive, 0);

    await restore();
    assert.deepEqual(await running, expected);
    await window();
  });
});

test('progress is reported for an MP4 over 32 MiB with its index at the end', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-mp4-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'long.mov');
  const noise = 'anoisesrc=r=192000:d=24:seed=1';
  execFileSync('ffmpeg', [
    '-loglevel',
    'error',
    '-f',
    'lavfi',
    '-i',
    noise,
    '-ac',
    '2',
    '-c:a',
    'pcm_f32le',
    path,
  ]);
  const mp4 = await readFile(path);
  assert.ok(mp4.length > 32 * 1024 * 1024, `${mp4.length} bytes`);
  assert.ok(mp4.indexOf('moov') > mp4.length / 2);
  const source = {
    size: mp4.length,
    async *read(from = 0, to = mp4.length) {
      for (let at = from; at < to; at += 65_536) yield mp4.subarray(at, Math.min(at + 65_536, to));
    },
  };
  const { classifier } = await start(t, { workers: 2 });
  const shares: number[] = [];
  const { steps, seconds, sampleRate, channels } = await classifier.classifyRecording(source, {
    stepSeconds: 10,
    onProgress: (share) => shares.push(share),
  });
  assert.deepEqual([seconds, sampleRate, channels, steps.length], [24, 192_000, 2, 3]);
  assert.deepEqual(
    shares,
    shares.toSorted((a, b) => a - b),
  );
  for (const tenth of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
    assert.ok(
      shares.some((share) => Math.floor(share * 10) === tenth),
      `never at ${tenth * 10} %`,
    );
  }
});
