import { plainEtag } from '@undertone/contract';
import { untilAborted } from '../abort.ts';
import { RequestFailedError } from '../errors.ts';
import { type Context, type HttpResponse, refusal } from '../http.ts';
import type { AudioSource, Md5 } from '../platform/platform.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import type { PiecePool } from '../source.ts';
import { withoutQuery } from '../urls.ts';

/** A part is resent if no byte is sent and no response arrives for this long. */
const IDLE_TIMEOUT_MS = 120_000;

/** The bytes of the recording from `start` up to `end`. */
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
  /** Default: PUT. */
  readonly method?: 'POST';
  readonly headers?: Record<string, string>;
  readonly maxRetries: number;
  readonly signal: AbortSignal;
  readonly pool: PiecePool;
  /** Called with the bytes of this part sent in the current attempt. */
  readonly onSent: (bytes: number) => void;
}

/** Sends one part until the server acknowledges the same bytes. Returns its ETag and the response. */
export function sendPart(
  context: Context,
  upload: PartUpload,
): Promise<{ etag: string; response: HttpResponse }> {
  const { part, maxRetries: attempts, signal } = upload;
  const what = upload.method ? 'Sending the recording' : `Part ${part.number}`;
  const retries = { ...ASYNCH_RETRIES, attempts, what, signal };
  return withRetries(context, retries, () => attemptPart(context, upload));
}

async function attemptPart(
  context: Context,
  upload: PartUpload,
): Promise<{ etag: string; response: HttpResponse }> {
  const { source, part, url, method = 'PUT', signal, pool, onSent } = upload;
  const { platform } = context;
  const size = part.end - part.start;
  const md5 = platform.md5();
  const idle = new IdleTimeout();
  const reading = new PartReader(upload, md5, idle);
  try {
    const response = await context.send({
      method,
      url,
      headers: {
        ...upload.headers,
        'content-type': 'application/octet-stream',
        // A stream has no length, but object stores require one.
        ...(platform.streamsBodies && { 'content-length': String(size) }),
      },
      body: platform.streamsBodies
        ? streamOf(reading.bytes())
        : await untilAborted(gather(reading.bytes(), size), signal),
      signal,
      timeout: idle.signal,
    });
    if (response.status < 200 || response.status > 299) throw refusal(response, withoutQuery(url));
    await source.verify();
    const sent = md5.hex();
    const etag = acknowledged(response, sent, part);
    if (etag !== null) pool.release(reading.pieces);
    onSent(size);
    return { etag: etag ?? `"${sent}"`, response };
  } catch (error) {
    onSent(0);
    // An error of the file is the cause; that of the connection only follows from it.
    throw reading.failure ?? error;
  } finally {
    idle.stop();
  }
}

/**
 * The ETag of the part; throws if it is that of other bytes. A missing ETag (some proxies drop it) is accepted for now:
 * the server compares all MD5s again on completion.
 */
function acknowledged(response: HttpResponse, md5: string, part: Part): string | null {
  const etag = response.headers.get('etag');
  if (etag === null || plainEtag(etag) === md5) return etag;
  // S3 with an AWS KMS key: the ETag is not an MD5.
  if (response.headers.get('x-amz-server-side-encryption')?.startsWith('aws:kms')) return etag;
  const details = { status: 200, code: 'etag_mismatch' } as const;
  throw new RequestFailedError(`Part ${part.number} was corrupted on the way.`, details);
}

/** Aborts its signal after a time without progress. */
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
    // A closed connection may still read ahead; do not restart the timer for it.
    if (!this.#stopped) this.#timer = setTimeout(() => this.#controller.abort(), IDLE_TIMEOUT_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}

/** Reads the bytes of one attempt. Keeps their memory for reuse, and the error if the file fails. */
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
