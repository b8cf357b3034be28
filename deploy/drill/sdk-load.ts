import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, ASYNCH_PATHS, type CompleteResult, PATHS } from '@undertone/contract';
import { EmotionClient } from '@undertone/sdk';
import { VOICES } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';
import { WAV_HEADER_BYTES } from '@undertone/testing/wav';

const VOICE = join(VOICES, 'happy-1064.wav');
const MIB = 1024 ** 2;
/** Two parts of at least 1 MiB, as small as parts can be. */
const IN_PARTS_SECONDS = 40;
const ONE_CALL_SECONDS = 10;
const STEP_SECONDS = 5;
/** Long enough for some to be open at the end of a drain. */
const STREAM = { seconds: 20, sampleRate: 16_000, pieceMs: 100 };
const EVERY_MS = { shorts: 500, uploadsInParts: 4_000, uploadsInOneCall: 2_000, streams: 1_000 };
const SLOW_PIECES = 60;
/** Takes seconds: it is being processed when its worker stops. */
const LONG_SECONDS = 300;

type Work = 'shorts' | 'uploadsInParts' | 'uploadsInOneCall' | 'slowUploads' | 'longRecordings' | 'streams';

/** Callers who use the SDK, without retries but for streams: whatever fails is seen. */
export class SdkLoad {
  readonly done: Record<Work, number> = {
    shorts: 0,
    uploadsInParts: 0,
    uploadsInOneCall: 0,
    slowUploads: 0,
    longRecordings: 0,
    streams: 0,
  };
  /** All errors and warnings that a caller saw. */
  readonly problems: string[] = [];
  /** How many streams reconnected how often. */
  readonly reconnects = new Map<number, number>();
  /** Streams that were refused and connected at another try. */
  retriedStreams = 0;
  readonly #url: string;
  readonly #key: string;
  readonly #client: EmotionClient;
  readonly #streaming: EmotionClient;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
    const options = (note: (message: string) => void) => ({
      apiKey: key,
      baseUrl: url,
      partSize: MIB,
      showProgress: false,
      logLevel: 'warn' as const,
      logger: { debug: note, info: note, warn: note, error: note },
    });
    this.#client = new EmotionClient({
      ...options((message) => this.problems.push(message)),
      retryAttempts: 0,
    });
    // A process under load may refuse a stream, restart or not; the SDK tries again.
    this.#streaming = new EmotionClient(
      options((message) => {
        if (/ Retry \d/.test(message)) this.retriedStreams++;
      }),
    );
  }

  start(): void {
    const inParts = talkWav(IN_PARTS_SECONDS);
    const inOneCall = talkWav(ONE_CALL_SECONDS);
    const { discrete, asynch } = this.#client;
    this.#every('shorts', async () => {
      assert.equal((await discrete.emotions(VOICE)).main_emotion, 'happy');
    });
    this.#every('uploadsInParts', async () =>
      this.#untilCompleted(await asynch.upload(inParts, { maxRetries: 0 }), IN_PARTS_SECONDS),
    );
    this.#every('uploadsInOneCall', async () =>
      this.#untilCompleted(await asynch.submit(inOneCall, { maxRetries: 0 }), ONE_CALL_SECONDS),
    );
    this.#every('streams', () => this.#stream(inParts));
  }

  /** Ends what was begun, and waits for all results. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Begins an upload in one call that takes this long, like one over a slow line. */
  sendSlowly(seconds: number): void {
    this.#run('slowUploads', async () => {
      const wav = talkWav(ONE_CALL_SECONDS);
      const upload = request(`${this.#url}${PATHS.asynch}${ASYNCH_PATHS.requests}?file_name=slow.wav`, {
        method: 'POST',
        headers: { [API_KEY_HEADER]: this.#key, 'content-length': wav.length, 'content-type': 'audio/wav' },
      });
      const answered = once(upload, 'response') as Promise<[IncomingMessage]>;
      answered.catch(() => undefined);
      const size = Math.ceil(wav.length / SLOW_PIECES);
      for (let at = 0; at < wav.length; at += size) {
        upload.write(wav.subarray(at, at + size));
        await sleep((seconds * 1000) / SLOW_PIECES);
      }
      upload.end();
      const [response] = await answered;
      const text = Buffer.concat(await response.toArray()).toString();
      assert.equal(response.statusCode, 202, text);
      await this.#untilCompleted((JSON.parse(text) as CompleteResult).request_id, ONE_CALL_SECONDS);
    });
  }

  /** Begins a long recording, and resolves with its id when a worker has it. */
  async sendLong(): Promise<string> {
    const { asynch } = this.#client;
    const id = await asynch.upload(talkWav(LONG_SECONDS), { maxRetries: 0 });
    this.#run('longRecordings', () => this.#untilCompleted(id, LONG_SECONDS));
    while ((await asynch.status(id)).status === 'queued') await sleep(20);
    return id;
  }

  async #untilCompleted(id: string, seconds: number): Promise<void> {
    const { emotions } = await this.#client.asynch.wait(id, { interval: 1_000 });
    assert.equal(emotions.length, seconds / STEP_SECONDS);
  }

  /** In real time. */
  async #stream(wav: Buffer): Promise<void> {
    const { seconds, sampleRate, pieceMs } = STREAM;
    let reconnects = 0;
    const stream = this.#streaming.stream({ sampleRate, onReconnect: () => reconnects++ });
    let predictions = 0;
    const reading = (async () => {
      for await (const _ of stream) predictions++;
    })();
    reading.catch(() => undefined);
    const size = (sampleRate * 2 * pieceMs) / 1000;
    const start = performance.now();
    for (let piece = 0; piece < (seconds * 1000) / pieceMs; piece++) {
      const at = WAV_HEADER_BYTES + piece * size;
      await stream.write(wav.subarray(at, at + size));
      await sleep(Math.max(0, start + (piece + 1) * pieceMs - performance.now()));
    }
    await stream.end();
    await reading;
    this.reconnects.set(reconnects, (this.reconnects.get(reconnects) ?? 0) + 1);
    assert.ok(predictions > 0, 'a stream without a prediction');
    assert.ok(reconnects <= 1, `a stream reconnected ${reconnects} times`);
  }

  #every(work: keyof typeof EVERY_MS, once: () => Promise<void>): void {
    this.#timers.push(setInterval(() => this.#run(work, once), EVERY_MS[work]));
  }

  #run(work: Work, once: () => Promise<void>): void {
    const running = once()
      .then(
        () => {
          this.done[work]++;
        },
        (error: Error) => {
          this.problems.push(`${work}: ${error.message}`);
        },
      )
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}
