import { readFile } from 'node:fs/promises';
import {
  cutIntoBlocks,
  decodeBlock,
  Ffmpeg,
  MODEL_SAMPLE_RATE,
  memorySource,
  openSound,
} from '@undertone/audio';
import type { Classifier } from '@undertone/classifier';

type Samples = Float32Array<ArrayBuffer>;

const MAX_WINDOW = 10 * MODEL_SAMPLE_RATE;
const MIN_WINDOW = MODEL_SAMPLE_RATE;
const ffmpeg = new Ffmpeg();

/** Probabilities of every model for a recording of any length: the mean over its windows. */
export async function classifyFile(
  classifier: Classifier,
  file: string,
): Promise<Record<string, Record<string, number>>> {
  const parts = splitEvenly(await samplesOf(await readFile(file)));
  const answers = await Promise.all(
    parts.map((part) => classifier.classifyWindow(part, { priority: 'asynch' })),
  );
  const mean = (id: string, emotion: string) =>
    answers.reduce((sum, { models }) => sum + (models[id]?.[emotion] ?? 0), 0) / answers.length;
  return Object.fromEntries(
    classifier.catalog.models.map(({ id, emotions }) => [
      id,
      Object.fromEntries(emotions.map((emotion) => [emotion, mean(id, emotion)])),
    ]),
  );
}

/** 16 kHz samples of a recording in any format. One shorter than the smallest window is padded with silence. */
export async function samplesOf(bytes: Uint8Array): Promise<Samples> {
  const sound = await openSound(memorySource(bytes), { ffmpeg, kind: 'recording' });
  const parts: Samples[] = [];
  for await (const block of cutIntoBlocks(sound.pieces, sound.format)) parts.push(...decodeBlock(block));
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const samples = new Float32Array(Math.max(length, MIN_WINDOW));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

function splitEvenly(samples: Samples): Samples[] {
  const count = Math.ceil(samples.length / MAX_WINDOW);
  const bound = (i: number) => Math.floor((i * samples.length) / count);
  return Array.from({ length: count }, (_, i) => samples.slice(bound(i), bound(i + 1)));
}
