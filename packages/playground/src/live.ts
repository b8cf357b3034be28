import type { ModelId } from '@undertone/contract';
import { type EmotionClient, fromMicrophone, type Microphone, type StreamPrediction } from '@undertone/sdk';
import { ofStream, type Result } from './result.ts';
import { wavOf } from './wav.ts';

/** Seconds between answers. Each is about the last 5 seconds. */
const INTERVAL_SECONDS = 2;
/** Length of a chunk from the microphone. */
const CHUNK_SECONDS = 0.1;
/** So many chunks become a blob, which the browser can move out of memory. */
const CHUNKS_PER_BLOB = 100;

export const NO_MICROPHONE =
  'Browsers allow the microphone only on https pages and on this machine (http://127.0.0.1 or http://localhost). ' +
  'Open this page over https, or record a file and drop it here.';

const REASONS: Record<string, string> = {
  NotAllowedError: 'The browser blocks the microphone. Allow it in the address bar, then try again.',
  NotFoundError: 'This machine has no microphone. Connect one, then try again.',
  NotReadableError: 'Another program is using the microphone. Close it, then try again.',
};

/** One microphone session, from `Microphone` to `Stop`. */
export class LiveSession {
  readonly model: ModelId;
  keep = false;
  state: 'opening' | 'listening' | 'paused' | 'stopping' | 'ended' = 'opening';
  error: unknown;
  /** Peak of the last chunk, 0 to 1. */
  level = 0;
  /** Peak of every chunk so far. */
  readonly levels: number[] = [];
  readonly #predictions: StreamPrediction[] = [];
  /** Everything since the start, whenever `keep` is set, so that sound and timeline agree. */
  readonly #kept: Blob[] = [];
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  readonly #listeners = new Set<() => void>();
  #microphone: Microphone | undefined;

  constructor(model: ModelId) {
    this.model = model;
  }

  /** Calls `listener` after every change, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get seconds(): number {
    return this.levels.length * CHUNK_SECONDS;
  }

  get result(): Result {
    return ofStream(this.#predictions, this.model, this.seconds);
  }

  /** The audio since the start, if `keep` is set. */
  get recording(): File | undefined {
    if (!this.keep || this.#bytes === 0 || this.#microphone === undefined) return undefined;
    const at = new Date().toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '-');
    const { sampleRate } = this.#microphone.format;
    const wav = wavOf([...this.#kept, ...this.#chunks], this.#bytes, sampleRate);
    return new File([wav], `microphone ${at}.wav`, { type: 'audio/wav' });
  }

  /** Resolves at the end of the session; `error` says what failed. */
  async run(client: EmotionClient): Promise<void> {
    try {
      const microphone = await fromMicrophone({ workletUrl: '/page/microphone-worklet.js' });
      this.#microphone = microphone;
      const whileListening = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          if (this.state !== 'listening') return;
          this.#record(chunk as Uint8Array<ArrayBuffer>);
          controller.enqueue(chunk);
        },
      });
      this.#setState('listening');
      const stream = client.stream({ ...microphone.format, model: this.model, interval: INTERVAL_SECONDS });
      for await (const prediction of stream.feed(microphone.readable.pipeThrough(whileListening))) {
        this.#predictions.push(prediction);
        this.#onChange();
      }
    } catch (error) {
      this.error = new Error(REASONS[(error as Error).name] ?? (error as Error).message);
    } finally {
      this.#microphone?.stop();
      this.level = 0;
      this.#setState('ended');
    }
  }

  /** Drops audio until `resume`. */
  pause(): void {
    this.level = 0;
    this.#setState('paused');
  }

  resume(): void {
    this.#setState('listening');
  }

  /** The last answer arrives after this. */
  stop(): void {
    this.#setState('stopping');
    this.#microphone?.stop();
  }

  #record(chunk: Uint8Array<ArrayBuffer>): void {
    const samples = new Int16Array(chunk.buffer, chunk.byteOffset, chunk.length / 2);
    this.level = samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0) / 32_768;
    this.levels.push(this.level);
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    if (this.#chunks.length === CHUNKS_PER_BLOB) {
      this.#kept.push(new Blob(this.#chunks));
      this.#chunks = [];
    }
    this.#onChange();
  }

  #onChange(): void {
    for (const listener of this.#listeners) listener();
  }

  #setState(state: LiveSession['state']): void {
    if (this.state === 'ended') return;
    this.state = state;
    this.#onChange();
  }
}
