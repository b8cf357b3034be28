import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { ConfigError, fromMicrophone, MICROPHONE_WORKLET } from '../src/index.ts';

interface Processor {
  port: { postMessage(data: ArrayBuffer): void };
  process(inputs: Float32Array[][]): boolean;
}

/** Runs the worklet with the globals of an audio thread. */
function startWorklet(sampleRate: number): { processor: Processor; sent: Int16Array[] } {
  const sent: Int16Array[] = [];
  class AudioWorkletProcessor {
    port = { postMessage: (data: ArrayBuffer) => sent.push(new Int16Array(data)) };
  }
  let Registered: (new () => Processor) | undefined;
  const registerProcessor = (_name: string, kind: new () => Processor) => {
    Registered = kind;
  };
  runInContext(
    MICROPHONE_WORKLET,
    createContext({ AudioWorkletProcessor, registerProcessor, sampleRate, Int16Array, Math }),
  );
  assert.ok(Registered);
  return { processor: new Registered(), sent };
}

test('the worklet posts clipped 16-bit samples ten times a second, in order and without gaps', () => {
  const { processor, sent } = startWorklet(48_000);
  const samples = Float32Array.from({ length: 48_000 }, (_, i) => 1.5 * Math.sin(i / 20));
  for (let at = 0; at < samples.length; at += 128) processor.process([[samples.subarray(at, at + 128)]]);
  assert.deepEqual(
    sent.map(({ length }) => length),
    Array(10).fill(4_800),
  );
  const expected = [...samples].map((sample) => Math.round(Math.max(-1, Math.min(1, sample)) * 32_767));
  assert.deepEqual(
    sent.flatMap((piece) => [...piece]),
    expected.map((sample) => sample + 0),
  );
});

test('an unconnected input is no error', () => {
  const { processor, sent } = startWorklet(44_100);
  assert.equal(processor.process([[]]), true);
  assert.deepEqual(sent, []);
});

test('without a microphone the error says so', async () => {
  await assert.rejects(
    fromMicrophone(),
    (error) => error instanceof ConfigError && /browser/.test(error.message),
  );
});
