import type { IncomingMessage } from 'node:http';
import type { Classifier } from '@undertone/classifier';
import { DEFAULT_MODEL, PATHS, SAMPLE_RATE, STREAM_LIMITS } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import { Server, type Socket } from 'socket.io';
import type { Hold } from '../held-bytes.ts';
import { rechecks } from '../http/auth.ts';
import { requireModel, resultOf } from '../prediction.ts';
import { asProblem, ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import type { Caller } from '../stores/contracts.ts';
import { type StreamFailure, StreamSession } from '../streams/session.ts';
import { StreamWindows, streamFormat } from '../streams/windows.ts';
import { requireScope } from '../tokens/scope.ts';
import { cutConnection, SocketIoKeys } from './socket-io-key.ts';

const MAX_MESSAGE_SECONDS = 10;
const SAMPLE_BYTES = 2;
/** Ten seconds at the highest rate in base64, and the JSON around them. */
const MAX_MESSAGE_BYTES = Math.ceil((MAX_MESSAGE_SECONDS * SAMPLE_RATE.max * SAMPLE_BYTES * 4) / 3) + 10_000;
/** Socket.IO has no backpressure: audio beyond this queue is dropped with a warning. */
const MAX_QUEUED_BYTES = 2 * STREAM_LIMITS.maxMessageBytes;
/** Events that a client has not read yet. One more, and its connection is cut. */
const MAX_UNREAD_EVENTS = 256;

function isSocketIo({ url = '' }: IncomingMessage): boolean {
  return url.startsWith(PATHS.socketIo);
}

/**
 * Streams for existing Socket.IO clients. Socket.IO handles every request under its path itself, so keys and limits are
 * checked when a client connects, not by the hooks of HTTP requests.
 */
export function serveSocketIo(app: FastifyInstance, services: Services): void {
  const { settings, streams, metrics, logger } = services;
  const io = new Server({
    path: PATHS.socketIo,
    serveClient: false,
    destroyUpgrade: false,
    maxHttpBufferSize: MAX_MESSAGE_BYTES,
    connectTimeout: app.connections.limits.unknownMs,
    ...(settings.corsOrigins.length > 0 && {
      cors: { origin: settings.corsOrigins.includes('*') ? '*' : [...settings.corsOrigins] },
    }),
  });
  // Other upgrades stay with the listeners registered so far.
  const otherListeners = app.server.listeners('upgrade');
  app.server.removeAllListeners('upgrade');
  app.server.on('upgrade', (request: IncomingMessage, ...rest) => {
    if (isSocketIo(request)) return;
    for (const listener of otherListeners) listener.call(app.server, request, ...rest);
  });
  io.attach(app.server);
  const keys = new SocketIoKeys(io.engine, app.connections);

  io.use((socket, next) => {
    const { api_key: key } = socket.handshake.auth as { api_key?: unknown };
    app
      .checkKey(typeof key === 'string' ? key : undefined, socket.handshake.address)
      .then(async (caller) => {
        requireScope(caller, 'stream');
        keys.markKnown(socket.conn, { owner: caller.owner, memory: () => streams.held.hold(caller.owner) });
        await app.countRequest(caller);
        await services.audioHours.require(caller);
        const releaseSlot = streams.reserveSlot(caller);
        if (socket.conn.readyState === 'closed') releaseSlot();
        else socket.conn.once('close', releaseSlot);
        socket.data = { caller, releaseSlot };
        next();
      })
      .catch((error: unknown) => next(connectError(error)));
  });

  io.on('connection', (socket) => {
    const { caller, releaseSlot } = socket.data as { caller: Caller; releaseSlot: () => void };
    const session = new SocketIoSession(socket, caller, services);
    const begun = performance.now();
    streams.add(session);
    void session.closed.then(() => {
      releaseSlot();
      const line = { method: 'GET', route: PATHS.socketIo, status: 101 };
      metrics.requests.inc(line);
      logger.info(
        { request_id: socket.id, ...line, ms: Math.round(performance.now() - begun), key: caller.logId },
        'the stream is closed',
      );
    });
  });

  // The streams are closed already. What is left are connections that never became one.
  app.addHook('preClose', async () => {
    io.disconnectSockets(true);
    io.engine.close();
  });
}

/** The CONNECT_ERROR of a refused client. */
function connectError(error: unknown): Error {
  const { code, message } = asProblem(error);
  return Object.assign(new Error(message), { data: { code, detail: message } });
}

interface AudioMessage {
  readonly model: string;
  readonly sampleRate: number;
  readonly audio: Buffer;
}

/** One connection: audio in base64 in, a prediction for every full 5 s out, in order. */
class SocketIoSession extends StreamSession {
  readonly #socket: Socket;
  readonly #classifier: Classifier;
  readonly #memory: Hold;
  #windows: StreamWindows | undefined;
  #sampleRate = 0;
  #queuedBytes = 0;
  #unread = 0;
  #lastTask: Promise<void> = Promise.resolve();

  constructor(socket: Socket, caller: Caller, services: Services) {
    const { classifier, metrics, logger, streams, tokens, audioHours } = services;
    // The middleware above has checked that the key is a string, and valid.
    const recheckKey = rechecks(tokens, socket.handshake.auth['api_key'] as string);
    const addAudio = (seconds: number) => audioHours.use(caller, seconds);
    const memory = streams.held.hold(caller.owner);
    super({ classifier, metrics, logger, times: streams.times, recheckKey, addAudio, memory });
    this.#memory = memory;
    void this.closed.then(() => memory.release());
    this.#socket = socket;
    this.#classifier = classifier;
    socket.once('disconnect', () => {
      // After our own close a polling client still has to fetch the last messages; its connection closes after that.
      if (this.ended.aborted) {
        socket.conn.once('close', () => this.connectionClosed());
      } else {
        this.connectionClosed();
        // A client that left the namespace would keep its connection without a stream.
        cutConnection(socket.conn);
      }
    });
    socket.conn.on('drain', () => {
      this.#unread = 0;
    });
    socket.on('message', (message: unknown) => this.#receive(message));
    this.#emit('connected', { session_id: socket.id });
  }

  /** Socket.IO buffers for a client that does not read, without a limit of its own. */
  #emit(event: string, data: object): void {
    this.#unread++;
    this.#socket.emit(event, data);
    if (this.#unread > MAX_UNREAD_EVENTS) this.terminate();
  }

  protected override startClose(error: StreamFailure | undefined): void {
    this.#emit('error', { error: error?.detail });
    this.#socket.disconnect(true);
  }

  protected override terminate(): void {
    cutConnection(this.#socket.conn);
  }

  #receive(message: unknown): void {
    try {
      const audio = readMessage(message, this.#classifier);
      const bytes = audio.audio.length;
      const queued = this.#queuedBytes + bytes;
      if (queued > MAX_QUEUED_BYTES || !this.#memory.resize(queued)) {
        this.#emit('warning', {
          message:
            'Audio arrives faster than it can be classified. This message was dropped: send more slowly.',
        });
        return;
      }
      this.#queuedBytes = queued;
      this.#lastTask = this.#lastTask
        .then(() => this.#classify(audio))
        .catch((error: unknown) => this.fail(error))
        .finally(() => {
          this.#queuedBytes -= bytes;
          this.#memory.resize(this.#queuedBytes);
        });
    } catch (error) {
      this.#emit('error', { error: asProblem(error).message });
    }
  }

  async #classify({ model, sampleRate, audio }: AudioMessage): Promise<void> {
    if (this.ended.aborted) return;
    if (this.#windows === undefined || sampleRate !== this.#sampleRate) {
      this.#windows = new StreamWindows(
        streamFormat('pcm_s16le', sampleRate, 1),
        STREAM_LIMITS.windowSeconds,
      );
      this.#sampleRate = sampleRate;
    }
    for (const window of this.#windows.push(audio)) {
      for (const { models } of await this.classifyWindow(window, 1)) {
        this.#emit('prediction', { ...resultOf(models, model), timestamp: Date.now() });
      }
    }
  }
}

/** Takes an object or its JSON text. Throws a problem if it is invalid. */
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
