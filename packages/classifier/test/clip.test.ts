import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { AudioError, resampleAll } from '@undertone/audio';
import { TEST_MODELS } from '@undertone/testing/paths';
import { encodings, writeWav } from '@undertone/testing/wav';
import { Classifier, OverloadedError } from '../src/index.ts';
import { vowels } from './support/sounds.ts';

let classifier: Classifier;
let folder: string;
before(async () => {
  classifier = await Classifier.start({ modelsDir: TEST_MODELS, workers: 2 });
  folder = await mkdtemp(join(tmpdir(), 'undertone-clip-'));
});
after(async () => {
  await classifier.close();
  await rm(folder, { recursive: true });
});

const file = (bytes: Uint8Array) => classifier.classifyClip({ kind: 'file', bytes });
const json = (text: string) => classifier.classifyClip({ kind: 'json', bytes: Buffer.from(text) });

function refused(code: string, message: RegExp, figures: Record<string, number> = {}) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AudioError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.deepEqual(error.figures, figures);
    return true;
  };
}

test('a WAV gives the same result as its 16 kHz samples, in every encoding and at odd rates', async () => {
  for (const sampleRate of [8000, 16_000, 44_100, 47_999]) {
    for (const encoding of sampleRate === 16_000 ? encodings : (['float32'] as const)) {
      const samples = vowels(5, 140, sampleRate);
      const prediction = await file(writeWav(samples, { sampleRate, encoding }));
      assert.deepEqual([prediction.seconds, prediction.sampleRate], [5, sampleRate]);
      assert.ok(prediction.timings.decodeMs > 0 && prediction.timings.inferenceMs > 0);
      if (encoding !== 'float32') continue;
      const window = resampleAll(samples, sampleRate);
      const { models, speechSeconds } = await classifier.classifyWindow(window, { priority: 'discrete' });
      assert.deepEqual([prediction.models, prediction.speechSeconds], [models, speechSeconds]);
    }
  }
});

test('JSON samples give the same result as their WAV, as an object and as a string', async () => {
  const samples = vowels(4.5, 140, 44_100);
  const expected = await file(writeWav(samples, { encoding: 'float32' }));
  const object = JSON.stringify({ payload: [[...samples]] });
  for (const text of [object, JSON.stringify(object)]) {
    const { models, seconds, sampleRate } = await json(text);
    assert.deepEqual(
      { models, seconds, sampleRate },
      { models: expected.models, seconds: 4.5, sampleRate: 44_100 },
    );
  }
});

test('other formats go through ffmpeg; lossless ones give the same result as the WAV', async () => {
  const wav = writeWav(vowels(5, 140, 44_100));
  const expected = await file(wav);
  await writeFile(join(folder, 'voice.wav'), wav);
  for (const [name, ...options] of [
    ['voice.flac'],
    ['voice.m4a'],
    ['voice.webm'],
    ['voice-adpcm.wav', '-c:a', 'adpcm_ima_wav'],
  ] as const) {
    const [from, to] = [join(folder, 'voice.wav'), join(folder, name)];
    execFileSync('ffmpeg', ['-y', '-loglevel', 'error', '-i', from, ...options, to]);
    const { models, seconds } = await file(await readFile(join(folder, name)));
    assert.ok(Math.abs(seconds - 5) < 0.05, `${name} is ${seconds} s long`);
    if (name === 'voice.flac') assert.deepEqual(models, expected.models);
  }
});

test('samples beyond 10 s, within the tolerance, are accepted and dropped', async () => {
  const samples = vowels(10.04, 140, 16_000);
  const { models, seconds } = await file(writeWav(samples, { sampleRate: 16_000, encoding: 'float32' }));
  assert.equal(seconds, 10.04);
  const window = await classifier.classifyWindow(samples.slice(0, 160_000), { priority: 'discrete' });
  assert.deepEqual(models, window.models);
  const payload = vowels(10.04, 140, 44_100);
  assert.equal((await json(JSON.stringify({ payload: [[...payload]] }))).seconds, 10.04);
});

test('an unusable clip is refused with its code, message and figures', async () => {
  const limits = { min_seconds: 4, max_seconds: 10 };
  await assert.rejects(
    file(writeWav(vowels(3, 140, 44_100))),
    refused('audio_too_short', /^The recording is 3 s long/, { ...limits, actual_seconds: 3 }),
  );
  const long = JSON.stringify({ payload: [new Array(11 * 44_100).fill(0)] });
  await assert.rejects(
    json(long),
    refused('audio_too_long', /is 11 s long/, { ...limits, actual_seconds: 11 }),
  );
  await assert.rejects(json('{"payload": [['), refused('bad_request', /not valid JSON/));
  await assert.rejects(
    json('{"payload": [[3]]}'),
    refused('bad_request', /payload\[0\]\[0\] is larger than 2/),
  );
  const broken = vowels(5, 140, 16_000);
  broken[40_000] = Number.NaN;
  await assert.rejects(
    file(writeWav(broken, { sampleRate: 16_000, encoding: 'float32' })),
    refused('unreadable_audio', /not numbers/),
  );
  await assert.rejects(
    file(writeWav(vowels(5, 140, 6000), { sampleRate: 6000 })),
    refused('sample_rate_too_low', /6000 Hz/, { min_sample_rate: 8000, actual_sample_rate: 6000 }),
  );
  await assert.rejects(
    file(writeWav(vowels(5, 140, 16_000)).subarray(0, 40)),
    refused(
      'unreadable_audio',
      /^This WAV file cannot be read: it has no data chunk\. Save it again as WAV\.$/,
    ),
  );
  await assert.rejects(file(new Uint8Array(0)), refused('unreadable_audio', /empty/));
  await assert.rejects(
    file(Buffer.from('a letter, not a recording')),
    refused('unreadable_audio', /not an audio file we can read/),
  );
  assert.equal(classifier.stats().restarts, 0);
});

async function withProgram(t: TestContext, script: string): Promise<Classifier> {
  const path = join(folder, `program-${Math.random()}`);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  const own = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1, ffmpegPath: path });
  t.after(() => own.close());
  return own;
}

test('too many concurrent clips for ffmpeg are refused with a time to retry', async (t) => {
  const busy = await withProgram(t, 'exec sleep 60');
  const abort = new AbortController();
  const bytes = Buffer.from('fLaC....');
  const clips = Array.from({ length: 400 }, () =>
    busy.classifyClip({ kind: 'file', bytes }, { signal: abort.signal }).catch((error: unknown) => error),
  );
  const refusal = await Promise.race(clips);
  assert.ok(refusal instanceof OverloadedError, String(refusal));
  assert.match(refusal.message, /^The server is busy\. Try again in \d+ seconds?\.$/);
  abort.abort(new Error('gone'));
  await Promise.all(clips);
});

test('without ffmpeg other formats and compressed WAV are refused with what to send or install', async (t) => {
  const own = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1, ffmpegPath: null });
  t.after(() => own.close());
  const adpcm = writeWav(vowels(5, 140, 16_000), { sampleRate: 16_000 });
  adpcm.writeUInt16LE(0x11, 20);
  for (const [bytes, message] of [
    [Buffer.from('fLaC....'), /^This recording is flac\. This server reads only WAV until ffmpeg/],
    [adpcm, /^This recording is compressed WAV\. This server reads only WAV until ffmpeg/],
  ] as const) {
    await assert.rejects(
      own.classifyClip({ kind: 'file', bytes }),
      refused('unsupported_media_type', message),
    );
  }
});

test('hostile bodies are classified or refused with an AudioError, and cost no thread', async () => {
  const bodies: Array<['file' | 'json', Buffer]> = [
    ['json', Buffer.from(`{"payload":[${'['.repeat(1_000_000)}`)],
    ['json', Buffer.from(`[${'[],'.repeat(1_000_000)}[]]`)],
    ['json', Buffer.from(`{"payload":[[${'0,'.repeat(3_000_000)}0]]}`)],
    ['json', Buffer.alloc(1_000_000, '"')],
    ['json', Buffer.from('{}')],
    [
      'file',
      writeWav(new Float32Array(10 * 8000), { sampleRate: 191_999, channels: 64, encoding: 'float64' }),
    ],
    ['file', writeWav(new Float32Array(5 * 191_999), { sampleRate: 191_999 })],
    ['file', Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), Buffer.alloc(100_000)])],
  ];
  await Promise.all(
    bodies.map(async ([kind, bytes]) => {
      const outcome = classifier.classifyClip({ kind, bytes });
      await outcome.catch((error: unknown) => assert.ok(error instanceof AudioError, String(error)));
    }),
  );
  assert.deepEqual([classifier.stats().alive, classifier.stats().restarts], [2, 0]);
});

test('parsing, decoding and inference do not block the event loop', async () => {
  const clip = writeWav(vowels(10, 140, 96_000), { sampleRate: 96_000, channels: 2 });
  const text = JSON.stringify({ payload: [[...vowels(10, 140, 44_100)]] });
  const before = performance.eventLoopUtilization();
  await Promise.all([file(clip), json(text), file(clip), json(text), file(clip), json(text)]);
  const { utilization } = performance.eventLoopUtilization(before);
  assert.ok(utilization < 0.5, `the event loop was busy for ${utilization} of the time`);
});
