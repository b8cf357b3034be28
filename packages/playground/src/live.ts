import type { ModelId } from '@undertone/contract';
import { type EmotionClient, fromMicrophone, type Microphone, type StreamPrediction } from '@undertone/sdk';
import { wavOf } from './recording.ts';
import { ofStream, type Result } from './result.ts';

/** Seconds between two answers. The server looks at the last five each time. */
const INTERVAL_SECONDS = 2;
/** The microphone brings pieces of this length. */
const PIECE_SECONDS = 0.1;

export const NO_MICROPHONE =
  'Browsers give the microphone only to pages over https, and to pages of this very machine (http://127.0.0.1 or ' +
  'http://localhost). Open this page over https, or record a file and drop it here.';

const REASONS: Record<string, string> = {
  NotAllowedError: 'This page may not use the microphone. Allow it in the address bar, then try again.',
  NotFoundError: 'This machine has no microphone. Connect one, then try again.',
  NotReadableError: 'Another program is using the microphone. Close it, then try again.',
};

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
  readonly #pieces: Uint8Array<ArrayBuffer>[] = [];
  readonly #onChange: () => void;
  #microphone: Microphone | undefined;

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
    const at = new Date().toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '-');
    const wav = wavOf(this.#pieces, this.#microphone.format.sampleRate);
    return new File([wav], `microphone ${at}.wav`, { type: 'audio/wav' });
  }

  /** Resolves when it is over; what went wrong is in `error`. */
  async run(client: EmotionClient): Promise<void> {
    try {
      const microphone = await fromMicrophone({ workletUrl: '/page/microphone-worklet.js' });
      this.#microphone = microphone;
      const heard = new TransformStream<Uint8Array, Uint8Array>({
        transform: (piece, controller) => {
          if (this.state !== 'listening') return;
          this.#hear(piece as Uint8Array<ArrayBuffer>);
          controller.enqueue(piece);
        },
      });
      this.#become('listening');
      const stream = client.stream({ ...microphone.format, model: this.model, interval: INTERVAL_SECONDS });
      for await (const prediction of stream.feed(microphone.readable.pipeThrough(heard))) {
        this.#predictions.push(prediction);
        this.#onChange();
      }
    } catch (error) {
      this.error = new Error(REASONS[(error as Error).name] ?? (error as Error).message);
    } finally {
      this.#microphone?.stop();
      this.level = 0;
      this.#become('ended');
    }
  }

  /** What is said meanwhile is not sent. */
  pause(): void {
    this.level = 0;
    this.#become('paused');
  }

  resume(): void {
    this.#become('listening');
  }

  /** The last answer is still to come. */
  stop(): void {
    this.#become('stopping');
    this.#microphone?.stop();
  }

  #hear(piece: Uint8Array<ArrayBuffer>): void {
    const samples = new Int16Array(piece.buffer, piece.byteOffset, piece.length / 2);
    this.level = samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0) / 32_768;
    this.levels.push(this.level);
    if (this.keep) this.#pieces.push(piece);
    this.#onChange();
  }

  #become(state: LiveSession['state']): void {
    if (this.state === 'ended') return;
    this.state = state;
    this.#onChange();
  }
}
