import {
  formatTimestamp,
  KEY_PROTOCOL_PREFIX,
  PATHS,
  SAMPLE_RATE,
  STREAM_CLOSE,
  STREAM_ENCODINGS,
  STREAM_LIMITS,
  STREAM_PROTOCOL,
} from '@undertone/contract';
import { itemsOf, untilAborted, withTimeout } from './abort.ts';
import {
  checkNames,
  choiceProblem,
  modelProblem,
  rangeProblem,
  throwIfAny,
  timeoutProblem,
} from './config.ts';
import {
  AuthenticationError,
  ConfigError,
  ConnectionFailedError,
  RateLimitError,
  RequestFailedError,
  ServerNotRunningError,
  type UndertoneErrorCode,
} from './errors.ts';
import type { Context } from './http.ts';
import { ASYNCH_RETRIES, withRetries } from './retry.ts';
import type { StreamEncoding, StreamOptions, StreamPrediction } from './types.ts';
import { joinUrl, modelsUrl } from './urls.ts';

const SAMPLE_BYTES: Record<StreamEncoding, number> = { pcm_s16le: 2, pcm_f32le: 4, mulaw: 1, alaw: 1 };
/** Backpressure: `write` waits while more than this is in flight. */
const MAX_BUFFERED_BYTES = 256 * 1024;
const RECONNECT_SPREAD_MS = 500;
const POLL_MS = 20;
const CONNECT_TIMEOUT_MS = 10_000;

type ServerMessage =
  | ({ type: 'prediction' } & StreamPrediction)
  | { type: 'ready' | 'done' }
  | { type: 'error'; code: UndertoneErrorCode; detail: string };

/**
 * Live audio: write raw samples, read predictions. After a lost connection, the next write reconnects. Samples in flight
 * are lost, but times still count all samples written.
 */
export class EmotionStream implements AsyncIterable<StreamPrediction> {
  /** The writing side as a standard stream, for `pipeTo`. */
  readonly writable: WritableStream<Uint8Array>;
  readonly #context: Context;
  readonly #options: StreamOptions;
  readonly #url: string;
  readonly #sampleRate: number;
  readonly #frameBytes: number;
  readonly #predictions: StreamPrediction[] = [];
  #socket: Promise<WebSocket> | undefined;
  #writtenBytes = 0;
  /** Bytes left of a frame that a lost connection cut: sending them would shift all later frames. */
  #skip = 0;
  #connectedBefore = false;
  #ending = false;
  /** Set at the end of the stream, with an error unless it ended normally. */
  #outcome: { error?: unknown } | undefined;
  #changed: PromiseWithResolvers<void>;
  /** Aborted at the end of the stream: it ends every wait. */
  readonly #stop = new AbortController();
  #writableController: WritableStreamDefaultController | undefined;

  /** @internal */
  constructor(context: Context, options: StreamOptions) {
    checkNames('stream', options, [
      'model',
      'sampleRate',
      'encoding',
      'channels',
      'interval',
      'onReconnect',
      'signal',
      'timeout',
    ]);
    const { model, sampleRate = SAMPLE_RATE.ideal, encoding = 'pcm_s16le', channels = 1, interval } = options;
    throwIfAny([
      modelProblem(model),
      rangeProblem('sampleRate', sampleRate, { ...SAMPLE_RATE, unit: 'hertz' }),
      rangeProblem('channels', channels, { min: 1, max: STREAM_LIMITS.maxChannels, unit: 'channels' }),
      rangeProblem('interval', interval ?? 1, { ...STREAM_LIMITS.intervalSeconds, unit: 'seconds' }),
      choiceProblem('encoding', encoding, STREAM_ENCODINGS),
      timeoutProblem(options.timeout),
      typeof WebSocket === 'function'
        ? undefined
        : 'Streaming needs a global WebSocket: use Node 22 or newer, or a browser.',
    ]);
    this.#changed = Promise.withResolvers();
    this.#context = context;
    this.#options = options;
    this.#sampleRate = sampleRate;
    this.#frameBytes = SAMPLE_BYTES[encoding] * channels;
    const query = { model, sample_rate: sampleRate, encoding, channels, interval };
    this.#url = joinUrl(context.config.baseUrl, PATHS.stream, query).replace(/^http/, 'ws');
    this.writable = new WritableStream({
      start: (controller) => {
        this.#writableController = controller;
      },
      write: (bytes) => this.write(bytes),
      close: () => this.end(),
      abort: (reason) => this.#finish({ error: reason }),
    });
    const { signal } = options;
    if (signal?.aborted) this.#finish({ error: signal.reason });
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => this.#finish({ error: this.#options.signal?.reason });

  /** Whether `end` or `close` was called, or the stream failed. */
  get ended(): boolean {
    return this.#ending || this.#outcome !== undefined;
  }

  /** Sends samples. Resolves when more can be sent. */
  async write(bytes: Uint8Array): Promise<void> {
    let socket = await this.#connected();
    while (socket.readyState !== WebSocket.OPEN) {
      // It is closing; after that, a new one takes its place.
      await this.#context.platform.sleep(POLL_MS, this.#stop.signal);
      socket = await this.#connected();
    }
    socket.send(bytes.subarray(this.#skip) as Uint8Array<ArrayBuffer>);
    this.#skip = Math.max(0, this.#skip - bytes.length);
    this.#writtenBytes += bytes.length;
    while (socket.bufferedAmount > MAX_BUFFERED_BYTES && socket.readyState === WebSocket.OPEN) {
      await this.#context.platform.sleep(POLL_MS, this.#stop.signal);
    }
  }

  /** Writes all bytes of a stream or an async iterable, then ends. Errors reach the reader of the predictions. */
  feed(pieces: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>): this {
    this.#writeAll(itemsOf(pieces, this.#stop.signal)).catch((error: unknown) => this.#finish({ error }));
    return this;
  }

  async #writeAll(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const piece of pieces) await this.write(piece);
    await this.end();
  }

  /** No more samples: the last prediction follows, then the iteration ends. */
  async end(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const socket = await this.#socket;
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'end' }));
    else this.#finish({});
  }

  /** Closes the stream immediately, without a last prediction. */
  close(): void {
    this.#finish({});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamPrediction> {
    try {
      for (;;) {
        yield* this.#predictions.splice(0);
        if (this.#outcome !== undefined && this.#predictions.length === 0) break;
        if (this.#predictions.length === 0) await this.#changed.promise;
      }
      if (this.#outcome.error !== undefined) throw this.#outcome.error;
    } finally {
      this.close();
    }
  }

  async #connected(): Promise<WebSocket> {
    if (this.#outcome !== undefined) {
      throw this.#stop.signal.reason;
    }
    this.#socket ??= this.#connect().catch((error: unknown) => {
      this.#finish({ error });
      throw error;
    });
    return this.#socket;
  }

  #connect(): Promise<WebSocket> {
    const { signal } = this.#stop;
    const attempts = this.#context.config.retryAttempts;
    const retries = { ...ASYNCH_RETRIES, codes: ['connection_failed'], attempts, what: 'Streaming', signal };
    return withRetries(this.#context, retries, async (retry) => {
      // A server that stops loses all of its streams at once: they must not come back at once. Retries have jitter anyway.
      if (retry === 0 && this.#connectedBefore) {
        await this.#context.platform.sleep(Math.random() * RECONNECT_SPREAD_MS, signal);
      }
      const socket = await this.#open().catch((error: unknown) => {
        // The server was up a moment ago, so it is probably restarting.
        const isTemporary = error instanceof ServerNotRunningError && this.#connectedBefore;
        throw isTemporary ? new ConnectionFailedError(error.message, { code: 'connection_failed' }) : error;
      });
      if (this.#connectedBefore) {
        this.#context.log.warn('The stream has reconnected.');
        this.#options.onReconnect?.();
      }
      this.#connectedBefore = true;
      return socket;
    });
  }

  async #open(): Promise<WebSocket> {
    const socket = this.#newSocket();
    const timeout = this.#options.timeout ?? this.#context.config.timeout ?? CONNECT_TIMEOUT_MS;
    const connect = (signal: AbortSignal | undefined) => untilAborted(this.#ready(socket, signal), signal);
    try {
      await withTimeout({ signal: this.#stop.signal, timeout }, connect, 'The stream did not connect');
      return socket;
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  /** Resolves when the server is ready for samples, rejects if it refuses. */
  #ready(socket: WebSocket, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const frames = Math.ceil(this.#writtenBytes / this.#frameBytes);
    this.#skip = frames * this.#frameBytes - this.#writtenBytes;
    const offset = frames / this.#sampleRate;
    let reason: RequestFailedError | undefined;
    let isReady = false;
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as ServerMessage;
      if (message.type === 'ready') {
        isReady = true;
        resolve();
      } else if (message.type === 'prediction') {
        this.#add(message, offset);
      } else if (message.type === 'error') {
        reason = streamError(message);
      } else {
        this.#finish({});
      }
    });
    socket.addEventListener('close', ({ code }) => {
      if (isReady && this.#outcome === undefined) this.#lost(code, reason ?? brokenConnection());
      if (!isReady && !signal?.aborted) this.#refusalReason(signal).then(reject, reject);
    });
    return promise;
  }

  #newSocket(): WebSocket {
    try {
      const { apiKey } = this.#context.config;
      return new WebSocket(this.#url, [STREAM_PROTOCOL, KEY_PROTOCOL_PREFIX + apiKey]);
    } catch {
      throw new ConfigError([
        'apiKey has characters that a WebSocket cannot send. Use a key created by the server.',
      ]);
    }
  }

  /** A WebSocket does not say why it was refused; a plain request with the same key does. */
  async #refusalReason(signal: AbortSignal | undefined): Promise<Error> {
    await this.#context.call({ method: 'GET', url: modelsUrl(this.#context.config.asynchUrl), signal });
    return new ConnectionFailedError('The server refused the stream. Perhaps too many are open.', {
      code: 'connection_failed',
    });
  }

  #lost(closeCode: number, error: RequestFailedError): void {
    this.#socket = undefined;
    const { badMessage, keyRefused, messageTooBig } = STREAM_CLOSE;
    const wrong: readonly number[] = [badMessage, keyRefused, messageTooBig];
    if (wrong.includes(closeCode) || this.#ending) this.#finish({ error });
    else this.#context.log.warn(`${error.message} The next samples reconnect it.`);
  }

  #add({ type: _, ...prediction }: { type: string } & StreamPrediction, offset: number): void {
    const start = prediction.start + offset;
    this.#predictions.push({ ...prediction, t: formatTimestamp(start), start, end: prediction.end + offset });
    this.#wake();
  }

  #finish(outcome: { error?: unknown }): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    const reason = outcome.error ?? new RequestFailedError('The stream has ended.', { code: 'stream_ended' });
    this.#stop.abort(reason);
    if (!this.#ending) this.#writableController?.error(reason);
    this.#socket?.then(
      (socket) => socket.close(),
      () => undefined,
    );
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function brokenConnection(): RequestFailedError {
  return new ConnectionFailedError('The connection of the stream was lost.', { code: 'connection_failed' });
}

function streamError({ code, detail }: { code: UndertoneErrorCode; detail: string }): RequestFailedError {
  if (code === 'invalid_api_key') return new AuthenticationError(detail, { code });
  return code === 'rate_limited'
    ? new RateLimitError(detail, { code })
    : new RequestFailedError(detail, { code });
}
