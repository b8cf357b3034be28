import { plainEtag } from '@undertone/contract';
import { RequestFailedError } from '../errors.ts';
import { type Answer, type Context, refusal } from '../http.ts';
import type { AudioSource, Md5 } from '../platform/platform.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import type { PiecePool } from '../source.ts';
import { withoutQuery } from '../urls.ts';

/** A part of which nobody takes a byte for this long, or which nobody answers for this long, is sent again. */
const IDLE_TIMEOUT_MS = 120_000;

/** A stretch of the recording: the bytes from `start` up to `end`. */
export interface Part {
  /** Counts from 1. */
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

export interface PartUpload {
  readonly source: AudioSource;
  readonly part: Part;
  readonly url: string;
  /** PUT when absent. */
  readonly method?: 'POST';
  readonly headers?: Record<string, string>;
  readonly maxRetries: number;
  readonly signal: AbortSignal;
  readonly pool: PiecePool;
  /** Told how much of this part has been sent in the present attempt. */
  readonly onSent: (bytes: number) => void;
}

/** Sends one part until it is acknowledged as what was sent. Returns its ETag, and what the service answered. */
export function sendPart(context: Context, upload: PartUpload): Promise<{ etag: string; answer: Answer }> {
  const { part, maxRetries: attempts, signal } = upload;
  const what = upload.method ? 'Sending the recording' : `Part ${part.number}`;
  const retries = { ...ASYNCH_RETRIES, attempts, what, signal };
  return withRetries(context, retries, () => attemptPart(context, upload));
}

async function attemptPart(context: Context, upload: PartUpload): Promise<{ etag: string; answer: Answer }> {
  const { source, part, url, method = 'PUT', signal, pool, onSent } = upload;
  const { platform } = context;
  const size = part.end - part.start;
  const md5 = platform.md5();
  const idle = new IdleTimeout();
  const reading = new PartReader(upload, md5, idle);
  try {
    const answer = await context.send({
      method,
      url,
      headers: {
        ...upload.headers,
        'content-type': 'application/octet-stream',
        // A stream has no length of its own, and other object stores require one.
        ...(platform.streamsBodies && { 'content-length': String(size) }),
      },
      body: platform.streamsBodies ? streamOf(reading.bytes()) : await gather(reading.bytes(), size),
      signal,
      timeout: idle.signal,
    });
    if (answer.status < 200 || answer.status > 299) throw refusal(answer, withoutQuery(url));
    await source.verify();
    const sent = md5.hex();
    const etag = acknowledged(answer, sent, part);
    if (etag !== null) pool.release(reading.pieces);
    onSent(size);
    return { etag: etag ?? `"${sent}"`, answer };
  } catch (error) {
    onSent(0);
    // What went wrong with the file matters more than what the connection made of it.
    throw reading.failure ?? error;
  } finally {
    idle.stop();
  }
}

/**
 * The ETag of what arrived; an acknowledgement of other bytes is none. One without an ETag (some proxies drop it) is taken for
 * now: the service compares our MD5s with what it stored before it accepts the whole.
 */
function acknowledged(answer: Answer, md5: string, part: Part): string | null {
  const etag = answer.headers.get('etag');
  if (etag === null || plainEtag(etag) === md5) return etag;
  // S3 with a key of AWS KMS: the ETag is not the MD5 of what was sent.
  if (answer.headers.get('x-amz-server-side-encryption')?.startsWith('aws:kms')) return etag;
  const details = { status: 200, code: 'etag_mismatch' };
  throw new RequestFailedError(`Part ${part.number} arrived damaged.`, details);
}

/** Aborts its signal when nothing has moved for a while. */
export class IdleTimeout {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor() {
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    clearTimeout(this.#timer);
    // A connection that was cut may still be reading ahead: nobody waits for that any more.
    if (!this.#stopped) this.#timer = setTimeout(() => this.#controller.abort(), IDLE_TIMEOUT_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}

/** Reads the bytes of one attempt; remembers their memory, and when it was the file that failed. */
class PartReader {
  readonly pieces: Uint8Array[] = [];
  failure: unknown;
  readonly #upload: PartUpload;
  readonly #md5: Md5;
  readonly #idle: IdleTimeout;

  constructor(upload: PartUpload, md5: Md5, idle: IdleTimeout) {
    this.#upload = upload;
    this.#md5 = md5;
    this.#idle = idle;
  }

  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { source, part, pool, onSent } = this.#upload;
    const allocate = () => {
      const piece = pool.allocate();
      this.pieces.push(piece);
      return piece;
    };
    let sent = 0;
    try {
      for await (const piece of source.read(part.start, part.end, allocate)) {
        this.#idle.restart();
        this.#md5.update(piece);
        yield piece as Uint8Array<ArrayBuffer>;
        sent += piece.length;
        onSent(sent);
      }
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}

function streamOf(bytes: AsyncGenerator<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream(
    {
      async pull(controller) {
        const next = await bytes.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      cancel: async () => void (await bytes.return(undefined)),
    },
    { highWaterMark: 0 },
  );
}

async function gather(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(length);
  let at = 0;
  for await (const piece of bytes) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
