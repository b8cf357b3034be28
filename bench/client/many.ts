// `discrete.many` on a server with little room: more concurrency than it can take must not make the whole slower.
import { EmotionClient } from '@undertone/sdk';
import { startServerProcess } from '@undertone/testing/server-process';
import { writeWav } from '@undertone/testing/wav';
import { voiceLike } from '../support/voice.ts';

const FILES = 50;

export interface ManySeconds {
  readonly four: number;
  readonly sixteen: number;
  /** Refusals (503) with a concurrency of 16, in its best run. */
  readonly refused: number;
}

/** The best of `repeat` runs with each concurrency, in turn, so that both see the same machine. */
export async function compareConcurrency(repeat: number): Promise<ManySeconds> {
  const server = await startServerProcess({ SERVICE_WORKERS: '1', SERVICE_QUEUE_LIMIT: '6' });
  try {
    const best: ManySeconds[] = [];
    await classify(server, 4);
    for (let i = 0; i < repeat; i++) {
      const four = await classify(server, 4);
      const sixteen = await classify(server, 16);
      best.push({ four: four.seconds, sixteen: sixteen.seconds, refused: sixteen.refused });
    }
    const four = Math.min(...best.map((run) => run.four));
    const fastest = best.toSorted((a, b) => a.sixteen - b.sixteen)[0];
    return { four, sixteen: fastest?.sixteen ?? Number.NaN, refused: fastest?.refused ?? Number.NaN };
  } finally {
    await server.stop();
  }
}

async function classify(server: { url: string; key: string }, concurrency: number) {
  const wav = writeWav(voiceLike(5, 44_100));
  let refused = 0;
  const client = new EmotionClient({
    apiKey: server.key,
    baseUrl: server.url,
    logLevel: 'silent',
    fetch: async (...call) => {
      const response = await fetch(...call);
      if (response.status === 503) refused++;
      return response;
    },
  });
  const files = Array.from({ length: FILES }, () => wav);
  const started = performance.now();
  for await (const { error } of client.discrete.many(files, { concurrency })) if (error) throw error;
  return { seconds: (performance.now() - started) / 1000, refused };
}
