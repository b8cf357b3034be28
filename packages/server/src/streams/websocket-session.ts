import { on } from 'node:events';
import type { Socket } from 'node:net';
import {
  formatTimestamp,
  STREAM_CLOSE,
  type StreamDone,
  type StreamError,
  type StreamPrediction,
  type StreamReady,
} from '@undertone/contract';
import type { WebSocket } from 'ws';
import { resultOf } from '../prediction.ts';
import { ProblemError, retryLater } from '../problems.ts';
import { type SessionOptions, type StreamFailure, StreamSession } from './session.ts';
import { UnreadBytes } from './unread-bytes.ts';
import { type StreamWindow, StreamWindows, streamFormat } from './windows.ts';

type Message = StreamReady | StreamPrediction | StreamError | StreamDone;

/** The only text message of a client is `{"type": "end"}`. */
const MAX_TEXT_BYTES = 1_000;
const MAX_UNREAD_BYTES = 64 * 1024;
/** Messages buffered before the socket is paused. */
const MAX_BUFFERED_MESSAGES = 1;

const CLOSE_CODES: Partial<Record<StreamFailure['code'], number>> = {
  going_away: STREAM_CLOSE.goingAway,
  request_timeout: STREAM_CLOSE.idle,
  overloaded: STREAM_CLOSE.overloaded,
  invalid_api_key: STREAM_CLOSE.keyRefused,
  quota_exceeded: STREAM_CLOSE.keyRefused,
  internal: STREAM_CLOSE.internal,
};

/**
 * A stream over WebSocket, from its first message to its close. It does one thing at a time: the socket is not read while
 * a window is classified. Answers are therefore in order, and a client that sends too fast is slowed down by TCP.
 *
 * The idle timer runs while the client has to send or to read; the latency timer while the server has to answer.
 */
export class WebSocketSession extends StreamSession {
  readonly #socket: WebSocket;
  readonly #ready: StreamReady;
  readonly #idleMs: number;
  readonly #windows: StreamWindows;
  readonly #unread: UnreadBytes;
  #idle: NodeJS.Timeout | undefined;
  #finishing = false;

  /** `tcp`: the connection under the socket. */
  constructor(socket: WebSocket, tcp: Socket, ready: StreamReady, options: SessionOptions) {
    super(options);
    this.#unread = new UnreadBytes(tcp, options.memory, () => this.fail(tooMuchUnread()));
    socket.on('message', () => this.#unread.messageComplete());
    this.#socket = socket;
    this.#ready = ready;
    this.#idleMs = options.times.idleMs;
    const format = streamFormat(ready.encoding, ready.sample_rate, ready.channels);
    this.#windows = new StreamWindows(format, ready.interval);
    this.ended.addEventListener('abort', () => clearTimeout(this.#idle));
    socket.once('close', () => this.connectionClosed());
    // Pings are answered whether or not the client reads the answers.
    socket.on('ping', () => {
      if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
    });
    // A broken connection also emits `close`, which is enough.
    socket.on('error', () => undefined);
  }

  /** Resolves when the session has nothing more to do; the connection may still be closing. */
  async run(): Promise<void> {
    const messages = on(this.#socket, 'message', {
      signal: this.ended,
      close: ['close'],
      highWaterMark: MAX_BUFFERED_MESSAGES,
      lowWaterMark: MAX_BUFFERED_MESSAGES,
    });
    try {
      this.#startIdleTimer();
      await this.#send(this.#ready);
      for await (const [data, isBinary] of messages as AsyncIterable<[Buffer, boolean]>) {
        if (data.length > 0) this.#startIdleTimer();
        if (isBinary) {
          for (const window of this.#windows.push(data)) await this.#answer(window);
          this.#unread.messageConsumed();
        } else {
          requireEnd(data);
          return await this.#finish();
        }
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** A client that has sent its end could not send that audio to another process: it gets its last answer first. */
  override closeForShutdown(): void {
    if (!this.#finishing) super.closeForShutdown();
  }

  protected override startClose(error: StreamFailure | undefined): void {
    if (error !== undefined) void this.#send({ type: 'error', ...error });
    const code = error === undefined ? STREAM_CLOSE.done : CLOSE_CODES[error.code];
    this.#socket.close(code ?? STREAM_CLOSE.badMessage, error?.code);
    // Drain the socket, so that the client's own close frame is reached.
    this.#socket.resume();
  }

  protected override terminate(): void {
    this.#socket.terminate();
  }

  async #answer(window: StreamWindow): Promise<void> {
    clearTimeout(this.#idle);
    const predictions = await this.classifyWindow(window, this.#ready.channels);
    this.#startIdleTimer();
    for (const [channel, { models, speechSeconds }] of predictions.entries()) {
      await this.#send({
        type: 'prediction',
        t: formatTimestamp(window.startSeconds),
        start: roundToMs(window.startSeconds),
        end: roundToMs(window.endSeconds),
        channel,
        ...resultOf(models, this.#ready.model),
        speech_seconds: Number(speechSeconds.toFixed(2)),
      });
    }
  }

  async #finish(): Promise<void> {
    this.#finishing = true;
    const tail = this.#windows.end();
    if (tail !== null) await this.#answer(tail);
    await this.#send({ type: 'done', duration_seconds: roundToMs(this.#windows.seconds) });
    this.close();
  }

  /** Resolves when the message is written to the socket, or the connection is lost. */
  #send(message: Message): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.send(JSON.stringify(message), () => resolve());
    return promise;
  }

  #startIdleTimer(): void {
    clearTimeout(this.#idle);
    if (this.ended.aborted) return;
    this.#idle = setTimeout(() => {
      const detail = `No audio arrived for ${this.#idleMs / 1_000} seconds. Connect again when there is audio.`;
      this.close({ code: 'request_timeout', detail });
    }, this.#idleMs);
  }
}

function tooMuchUnread(): ProblemError {
  return retryLater('overloaded', 'Too much audio is waiting to be read. Send smaller messages.', 5);
}

function requireEnd(data: Buffer): void {
  if (data.length <= MAX_TEXT_BYTES) {
    try {
      if (JSON.parse(data.toString()).type === 'end') return;
    } catch {
      // Reported below.
    }
  }
  throw new ProblemError(
    'bad_request',
    'Send audio in binary messages. The only text message is {"type": "end"}.',
  );
}

/** Seconds, rounded to whole milliseconds. */
function roundToMs(seconds: number): number {
  return Number(seconds.toFixed(3));
}
