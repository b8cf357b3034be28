import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { cut, encode, voiceAt, voiceNames } from '@undertone/testing/stream-audio';
import { StreamClient } from '@undertone/testing/stream-client';
import { writeWav } from '@undertone/testing/wav';

const SECONDS = 5;
const FRAMES_PER_SECOND = 50;
/** Delay between the starts of the voices. */
const STAGGER_MS = 500;

export interface HeardVoice {
  readonly name: string;
  readonly live: string | undefined;
  readonly discrete: string;
  /** Time from the window's last sample to its answer. */
  readonly lagMs: number;
}

/** Sends 5 s of every example voice in real time, and the same 5 s as a file. */
export async function streamVoices(
  server: { readonly url: string; readonly key: string },
  rate: number,
): Promise<HeardVoice[]> {
  const names = await voiceNames();
  const voices = await Promise.all(names.map((name) => voiceAt(name, rate, SECONDS)));
  return Promise.all(
    names.map(async (name, i) => {
      const samples = voices[i] as Float32Array;
      await sleep(i * STAGGER_MS);
      const { live, lagMs } = await streamVoice(server, rate, encode(samples));
      const form = new FormData();
      form.set('file', new Blob([new Uint8Array(writeWav(samples, { sampleRate: rate }))]), name);
      const headers = { [API_KEY_HEADER]: server.key };
      // After all streams have ended, so that it does not slow them down.
      await sleep((names.length - i) * STAGGER_MS);
      const response = await fetch(server.url + PATHS.discrete, { method: 'POST', headers, body: form });
      const { main_emotion: discrete } = (await response.json()) as { main_emotion: string };
      return { name, live, discrete, lagMs };
    }),
  );
}

async function streamVoice(server: { url: string; key: string }, rate: number, bytes: Buffer) {
  const client = new StreamClient(server.url, server.key, { sample_rate: rate });
  await once(client.socket, 'open');
  const frames = cut(bytes, [(2 * rate) / FRAMES_PER_SECOND]);
  const begun = performance.now();
  for (const [i, frame] of frames.entries()) {
    await sleep(begun + ((i + 1) * 1_000) / FRAMES_PER_SECOND - performance.now());
    client.send(frame);
  }
  while (client.predictions.length === 0) await once(client.socket, 'message');
  const lagMs = performance.now() - begun - 1_000 * SECONDS;
  client.socket.terminate();
  return { live: client.predictions[0]?.main_emotion, lagMs };
}
