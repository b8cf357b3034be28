import type { ModelId } from '@undertone/contract';
import type { EmotionClient, EmotionStream, StreamPrediction } from '@undertone/sdk';
import { type Microphone, openMicrophone } from './microphone.ts';
import { wavOf } from './recording.ts';
import { ofStream, type Result } from './result.ts';

/** Seconds between two answers. The server looks at the last five each time. */
const INTERVAL_SECONDS = 2;
const PIECE_SECONDS = 0.1;

/** One use of the microphone, from the button `Microphone` to the button `Stop`. Tells `onChange` of everything. */
export class LiveSession {
  readonly model: ModelId;
  keep = false;
  state: 'opening' | 'listening' | 'paused' | 'stopping' | 'ended' = 'opening';
  error: unknown;
  /** Of the last piece, 0 to 1. */
  level = 0;
  /** The loudest sample of each tenth of a second. */
  readonly levels: number[] = [];
  readonly #predictions: StreamPrediction[] = [];
  readonly #pieces: Int16Array<ArrayBuffer>[] = [];
  readonly #onChange: () => void;
  #microphone: Microphone | undefined;
  #stream: EmotionStream | undefined;

  constructor(model: ModelId, onChange: () => void) {
    this.model = model;
    this.#onChange = onChange;
  }

  get seconds(): number {
    return this.levels.length * PIECE_SECONDS;
  }

  get result(): Result {
    return ofStream(this.#predictions, this.model, this.seconds);
  }

  /** What was kept, where it was wanted. */
  get recording(): File | undefined {
    if (this.#pieces.length === 0 || this.#microphone === undefined) return undefined;
    const name = `microphone ${new Date().toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '-')}.wav`;
    return new File([wavOf(this.#pieces, this.#microphone.sampleRate)], name, { type: 'audio/wav' });
  }

  /** Resolves when it is over; what went wrong is in `error`. */
  async run(client: EmotionClient): Promise<void> {
    try {
      this.#microphone = await openMicrophone((samples) => this.#hear(samples));
      const { sampleRate } = this.#microphone;
      this.#stream = client.stream({ model: this.model, sampleRate, interval: INTERVAL_SECONDS });
      this.#become('listening');
      for await (const prediction of this.#stream) {
        this.#predictions.push(prediction);
        this.#onChange();
      }
    } catch (error) {
      this.error = error;
    } finally {
      await this.#microphone?.close().catch(() => undefined);
      this.level = 0;
      this.#become('ended');
    }
  }

  async pause(): Promise<void> {
    await this.#microphone?.pause();
    this.level = 0;
    this.#become('paused');
  }

  async resume(): Promise<void> {
    await this.#microphone?.resume();
    this.#become('listening');
  }

  async stop(): Promise<void> {
    if (this.state === 'ended') return;
    this.#become('stopping');
    await this.#microphone?.pause();
    await this.#stream?.end();
  }

  #hear(samples: Float32Array): void {
    if (this.#stream === undefined || this.state !== 'listening') return;
    this.level = samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0);
    this.levels.push(this.level);
    const piece = Int16Array.from(samples, (sample) => Math.max(-1, Math.min(1, sample)) * 32_767);
    if (this.keep) this.#pieces.push(piece);
    // It fails only when the stream is over, and then the iteration above says why.
    this.#stream.write(new Uint8Array(piece.buffer)).catch(() => undefined);
    this.#onChange();
  }

  #become(state: LiveSession['state']): void {
    if (this.state === 'ended') return;
    this.state = state;
    this.#onChange();
  }
}
