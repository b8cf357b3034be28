import type { IncomingMessage } from 'node:http';
import type { Classifier } from '@undertone/classifier';
import { DEFAULT_MODEL, PATHS, SAMPLE_RATE, STREAM_LIMITS } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import { Server, type Socket } from 'socket.io';
import { type CheckKey, type RecheckKey, rechecks } from '../http/auth.ts';
import type { CountRequest } from '../http/rate-limit.ts';
import { requireModel, toResult } from '../prediction.ts';
import { asProblem, ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import type { Caller } from '../stores/contracts.ts';
import { hear } from '../streams/classify-window.ts';
import type { OpenStream } from '../streams/registry.ts';
import { StreamWindows, streamFormat } from '../streams/windows.ts';

interface SocketIoOptions extends Services {
  readonly checkKey: CheckKey;
  readonly countRequest: CountRequest;
}

const MAX_MESSAGE_SECONDS = 10;
const SAMPLE_BYTES = 2;
/** Ten seconds at the highest rate, written in base64, with something around them. */
const MAX_MESSAGE_BYTES = Math.ceil((MAX_MESSAGE_SECONDS * SAMPLE_RATE.max * SAMPLE_BYTES * 4) / 3) + 10_000;
/** Socket.IO has no backpressure: what comes faster than it is heard is kept up to here, then dropped with a warning. */
const MAX_WAITING_BYTES = 2 * STREAM_LIMITS.maxMessageBytes;
/** A connection has so long to say who it is. */
const CONNECT_WITHIN_MS = 10_000;

export function isSocketIo({ url = '' }: IncomingMessage): boolean {
  return url.startsWith(PATHS.socketIo);
}

/**
 * Existing clients of such services speak Socket.IO. It answers everything under its path itself, so keys and limits are
 * checked when a client connects, not by the hooks of HTTP requests.
 */
export function serveSocketIo(app: FastifyInstance, options: SocketIoOptions): void {
  const { settings, streams, metrics, logger, checkKey, countRequest } = options;
  const io = new Server({
    path: PATHS.socketIo,
    serveClient: false,
    destroyUpgrade: false,
    maxHttpBufferSize: MAX_MESSAGE_BYTES,
    connectTimeout: CONNECT_WITHIN_MS,
    ...(settings.corsOrigins.length > 0 && {
      cors: { origin: settings.corsOrigins.includes('*') ? '*' : [...settings.corsOrigins] },
    }),
  });
  io.attach(app.server);

  io.use((socket, next) => {
    const { api_key: key } = socket.handshake.auth as { api_key?: unknown };
    checkKey(typeof key === 'string' ? key : undefined, socket.handshake.address)
      .then(async (caller) => {
        await countRequest(caller.id);
        const leave = streams.takePlace(caller.id);
        if (socket.conn.readyState === 'closed') leave();
        else socket.conn.once('close', leave);
        socket.data = { caller, leave };
        next();
      })
      .catch((error: unknown) => next(connectError(error)));
  });

  io.on('connection', (socket) => {
    const { caller, leave } = socket.data as { caller: Caller; leave: () => void };
    const session = new SocketIoSession(socket, options);
    const begun = performance.now();
    streams.add(session);
    void session.closed.then(() => {
      leave();
      const line = { method: 'GET', route: PATHS.socketIo, status: 101 };
      metrics.requests.inc(line);
      logger.info(
        { request_id: socket.id, ...line, ms: Math.round(performance.now() - begun), key: caller.logId },
        'the stream is closed',
      );
    });
  });

  // After the streams have been told: what is left are connections that never became one.
  app.addHook('preClose', async () => {
    io.disconnectSockets(true);
    io.engine.close();
  });
}

/** What a refused client gets: the sentence, and the code to branch on. */
function connectError(error: unknown): Error {
  const { code, message } = asProblem(error);
  return Object.assign(new Error(message), { data: { code, detail: message } });
}

interface AudioMessage {
  readonly model: string;
  readonly sampleRate: number;
  readonly audio: Buffer;
}

/** One connection: audio in base64, an emotion for every full 5 s of it, one after another. */
class SocketIoSession implements OpenStream {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #options: SocketIoOptions;
  readonly #recheckKey: RecheckKey;
  readonly #over = new AbortController();
  #windows: StreamWindows | undefined;
  #sampleRate = 0;
  #waitingBytes = 0;
  #closing = false;
  #work: Promise<void> = Promise.resolve();

  constructor(socket: Socket, options: SocketIoOptions) {
    this.#socket = socket;
    this.#options = options;
    // Only those get here whose key is a text and was valid.
    this.#recheckKey = rechecks(options.authenticator, socket.handshake.auth['api_key'] as string);
    this.closed = new Promise((resolve) => {
      socket.once('disconnect', () => {
        this.#over.abort();
        // A polling client fetches the last words with its next request: its connection is closed after that.
        if (this.#closing) socket.conn.once('close', () => resolve());
        else resolve();
      });
    });
    socket.on('message', (message: unknown) => this.#receive(message));
    socket.emit('connected', { session_id: socket.id });
  }

  goAway(): void {
    this.#close('The server is stopping. Connect again.');
  }

  #receive(message: unknown): void {
    try {
      const audio = readMessage(message, this.#options.classifier);
      const bytes = audio.audio.length;
      if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
        this.#socket.emit('warning', {
          message: 'Audio comes faster than it can be heard. This message was dropped: send more slowly.',
        });
        return;
      }
      this.#waitingBytes += bytes;
      this.#work = this.#work
        .then(() => this.#hear(audio))
        .catch((error: unknown) => this.#fail(error))
        .finally(() => {
          this.#waitingBytes -= bytes;
        });
    } catch (error) {
      this.#socket.emit('error', { error: asProblem(error).message });
    }
  }

  async #hear({ model, sampleRate, audio }: AudioMessage): Promise<void> {
    if (this.#over.signal.aborted) return;
    if (this.#windows === undefined || sampleRate !== this.#sampleRate) {
      this.#windows = new StreamWindows(
        streamFormat('pcm_s16le', sampleRate, 1),
        STREAM_LIMITS.windowSeconds,
      );
      this.#sampleRate = sampleRate;
    }
    const options = { ...this.#options, times: this.#options.streams.times, signal: this.#over.signal };
    for (const window of this.#windows.push(audio)) {
      this.#recheckKey().catch((error: unknown) => this.#fail(error));
      const [heard] = await hear(window, 1, options);
      const result = toResult(heard?.models[model] as Record<string, number>);
      this.#socket.emit('prediction', { ...result, timestamp: Date.now() });
    }
  }

  #fail(error: unknown): void {
    if (this.#over.signal.aborted) return;
    const { code, message, cause } = asProblem(error);
    if (code === 'internal') this.#options.logger.error({ err: cause }, 'a stream failed');
    this.#close(message);
  }

  #close(error: string): void {
    if (this.#closing) return;
    this.#closing = true;
    const { conn } = this.#socket;
    const force = setTimeout(() => conn.close(true), this.#options.streams.times.closeMs);
    conn.once('close', () => clearTimeout(force));
    this.#socket.emit('error', { error });
    this.#socket.disconnect(true);
  }
}

/** As an object or as the text of one. Throws the problem of one that makes no sense. */
function readMessage(message: unknown, classifier: Classifier): AudioMessage {
  const { service, action, model, payload, sample_rate } = asObject(message);
  if (service !== 'emotion' || action !== 'prediction' || typeof payload !== 'string') {
    throw bad(
      'A message is {service: "emotion", action: "prediction", model, payload: <base64 of PCM16 mono>}.',
    );
  }
  const sampleRate = sample_rate ?? SAMPLE_RATE.ideal;
  if (!isSampleRate(sampleRate)) {
    throw bad(`sample_rate must be a whole number from ${SAMPLE_RATE.min} to ${SAMPLE_RATE.max}.`);
  }
  const audio = Buffer.from(payload, 'base64');
  if (audio.length > MAX_MESSAGE_SECONDS * sampleRate * SAMPLE_BYTES) {
    throw bad(`A message may have ${MAX_MESSAGE_SECONDS} seconds of audio. Send it in smaller pieces.`);
  }
  return { model: requireModel(classifier, String(model ?? DEFAULT_MODEL)), sampleRate, audio };
}

function asObject(message: unknown): Record<string, unknown> {
  try {
    const value: unknown = typeof message === 'string' ? JSON.parse(message) : message;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isSampleRate(rate: unknown): rate is number {
  return Number.isInteger(rate) && Number(rate) >= SAMPLE_RATE.min && Number(rate) <= SAMPLE_RATE.max;
}

function bad(detail: string): ProblemError {
  return new ProblemError('bad_request', detail);
}
