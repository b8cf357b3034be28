import { on } from 'node:events';
import type { PcmFormat } from '@undertone/audio';
import type { Classifier } from '@undertone/classifier';
import {
  formatTimestamp,
  STREAM_CLOSE,
  type StreamDone,
  type StreamError,
  type StreamPrediction,
  type StreamReady,
} from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket } from 'ws';
import type { RecheckKey } from '../http/auth.ts';
import type { Metrics } from '../operators/metrics.ts';
import { resultOf } from '../prediction.ts';
import { asProblem, ProblemError } from '../problems.ts';
import { hear } from './classify-window.ts';
import type { OpenStream, StreamTimes } from './registry.ts';
import { type StreamWindow, StreamWindows } from './windows.ts';

interface SessionOptions {
  readonly ready: StreamReady;
  readonly format: PcmFormat;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly recheckKey: RecheckKey;
  readonly logger: FastifyBaseLogger;
  readonly times: StreamTimes;
}

type Message = StreamReady | StreamPrediction | StreamError | StreamDone;

/** A client has one thing to say in text. */
const MAX_TEXT_BYTES = 1_000;
/** Messages that wait here before the socket is no longer read. */
const MESSAGES_AHEAD = 1;

/**
 * One stream, from its first message to its close. It does one thing at a time: while a window is being answered nothing
 * is read, so answers are in order, and a client that sends faster than they come is held back by its own socket.
 *
 * The idle timer runs whenever it is the client's turn, to send or to take an answer; the lag timer when it is ours.
 */
export class StreamSession implements OpenStream {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #options: SessionOptions;
  readonly #windows: StreamWindows;
  readonly #over = new AbortController();
  #idle: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket, options: SessionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#windows = new StreamWindows(options.format, options.ready.interval);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#end();
        resolve();
      });
    });
    // A broken connection closes as well, and then it is over: there is nothing more to say about it.
    socket.on('error', () => undefined);
  }

  /** Resolves when there is nothing more to do. */
  async run(): Promise<void> {
    const messages = on(this.#socket, 'message', {
      signal: this.#over.signal,
      close: ['close'],
      highWaterMark: MESSAGES_AHEAD,
      lowWaterMark: MESSAGES_AHEAD,
    });
    try {
      this.#waitForClient();
      await this.#send(this.#options.ready);
      for await (const [data, isBinary] of messages as AsyncIterable<[Buffer, boolean]>) {
        if (data.length > 0) this.#waitForClient();
        if (isBinary) {
          for (const window of this.#windows.push(data)) await this.#answer(window);
        } else {
          requireEnd(data);
          return await this.#finish();
        }
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  goAway(): void {
    this.#close(STREAM_CLOSE.goingAway, {
      code: 'going_away',
      detail:
        'The server is stopping. Connect again; another one, or this one after its restart, will answer.',
    });
  }

  async #answer(window: StreamWindow): Promise<void> {
    const { ready } = this.#options;
    clearTimeout(this.#idle);
    // Not waited for: a slow store delays no answer, and a revoked key gets none after this one.
    this.#options.recheckKey().catch((error: unknown) => this.#fail(error));
    const heard = await hear(window, ready.channels, { ...this.#options, signal: this.#over.signal });
    this.#waitForClient();
    for (const [channel, { models, speechSeconds }] of heard.entries()) {
      await this.#send({
        type: 'prediction',
        t: formatTimestamp(window.startSeconds),
        start: milliseconds(window.startSeconds),
        end: milliseconds(window.endSeconds),
        channel,
        ...resultOf(models, ready.model),
        speech_seconds: Number(speechSeconds.toFixed(2)),
      });
    }
  }

  async #finish(): Promise<void> {
    const tail = this.#windows.end();
    if (tail !== null) await this.#answer(tail);
    await this.#send({ type: 'done', duration_seconds: milliseconds(this.#windows.seconds) });
    this.#close(STREAM_CLOSE.done);
  }

  /** Resolves when the client's side has taken it, or is gone. */
  #send(message: Message): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.send(JSON.stringify(message), () => resolve());
    return promise;
  }

  #waitForClient(): void {
    clearTimeout(this.#idle);
    if (this.#over.signal.aborted) return;
    this.#idle = setTimeout(() => {
      const detail = `Nothing came for ${this.#options.times.idleMs / 1_000} seconds. Connect again when there is audio.`;
      this.#close(STREAM_CLOSE.idle, { code: 'request_timeout', detail });
    }, this.#options.times.idleMs);
  }

  #fail(error: unknown): void {
    // The client is gone, or was told why.
    if (this.#over.signal.aborted) return;
    const problem = asProblem(error);
    const { code, message: detail, cause } = problem;
    if (code === 'internal') this.#options.logger.error({ err: cause }, 'a stream failed');
    this.#close(closeCodeOf(problem), { code, detail });
  }

  #close(closeCode: number, error?: Omit<StreamError, 'type'>): void {
    if (this.#over.signal.aborted) return;
    this.#end();
    if (error !== undefined) void this.#send({ type: 'error', ...error });
    this.#socket.close(closeCode, error?.code);
    // What still comes is read, and dropped, until the client's own close is among it.
    this.#socket.resume();
    const force = setTimeout(() => this.#socket.terminate(), this.#options.times.closeMs);
    void this.closed.then(() => clearTimeout(force));
  }

  #end(): void {
    clearTimeout(this.#idle);
    this.#over.abort();
  }
}

function requireEnd(data: Buffer): void {
  if (data.length <= MAX_TEXT_BYTES) {
    try {
      if (JSON.parse(data.toString()).type === 'end') return;
    } catch {
      // Said below.
    }
  }
  throw new ProblemError(
    'bad_request',
    'Audio is sent in binary messages; the only text message is {"type": "end"}.',
  );
}

function closeCodeOf({ code, status }: ProblemError): number {
  if (code === 'overloaded') return STREAM_CLOSE.overloaded;
  if (code === 'invalid_api_key') return STREAM_CLOSE.keyRefused;
  return status >= 500 ? STREAM_CLOSE.internal : STREAM_CLOSE.badMessage;
}

function milliseconds(seconds: number): number {
  return Number(seconds.toFixed(3));
}
