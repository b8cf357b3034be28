import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { type Answer, refusal } from '../http/answer.ts';
import { withRetries } from '../http/retry.ts';
import { speakable } from '../http/url.ts';
import type { Md5 } from '../platform/platform.ts';
import type { Lease, PiecePool } from '../source/piece-pool.ts';
import type { AudioSource } from '../source/source.ts';
import type { Part } from './parts.ts';
import { Stall } from './stall.ts';

export interface PartDelivery {
  readonly source: AudioSource;
  readonly part: Part;
  readonly url: string;
  readonly maxRetries: number;
  readonly signal: AbortSignal;
  readonly pool: PiecePool;
  /** Told how much of this part has been handed over in the present attempt. */
  readonly onSent: (bytes: number) => void;
}

/** Sends one part until it is acknowledged as what was sent. Returns its MD5. */
export function sendPart(context: Context, delivery: PartDelivery): Promise<string> {
  const { part, maxRetries, signal } = delivery;
  const retries = { attempts: maxRetries, what: `Part ${part.number}`, signal };
  return withRetries(context, retries, () => attempt(context, delivery));
}

async function attempt(context: Context, delivery: PartDelivery): Promise<string> {
  const { source, part, url, signal } = delivery;
  const { platform } = context;
  const md5 = platform.md5();
  const stall = new Stall();
  const lease = delivery.pool.lease();
  const bytes = watched(delivery, lease, md5, stall);
  try {
    const body = platform.streamsBodies ? streamOf(bytes) : await gather(bytes, part.end - part.start);
    // A stream has no length of its own, and stores that are not ours insist on one.
    const headers = {
      'content-length': String(part.end - part.start),
      'content-type': 'application/octet-stream',
    };
    const answer = await context.transport.send({
      method: 'PUT',
      url,
      headers: platform.streamsBodies ? headers : { 'content-type': headers['content-type'] },
      body,
      signal,
      deadline: stall.signal,
    });
    if (answer.status !== 200) throw refusal(answer, speakable(url));
    await source.verify();
    const sent = md5.hex();
    if (isAcknowledged(answer, sent, part)) lease.giveBack();
    delivery.onSent(part.end - part.start);
    return sent;
  } catch (error) {
    delivery.onSent(0);
    // What went wrong with the file matters more than what the connection made of it.
    throw stall.sourceFailure ?? error;
  } finally {
    stall.over();
  }
}

/**
 * An acknowledgement of other bytes is none. One without an ETag (some proxies drop it) is taken for now:
 * the service compares our MD5s with what it holds before it accepts the whole.
 */
function isAcknowledged(answer: Answer, md5: string, part: Part): boolean {
  const etag = answer.headers.get('etag');
  if (etag === null) return false;
  if (isEtagOf(etag, md5)) return true;
  throw new Failure(`Part ${part.number} arrived damaged.`, { status: 200, code: 'etag_mismatch' }, true);
}

/** ETags are quoted, and weakened by some proxies. */
export function isEtagOf(etag: string, md5: string): boolean {
  return (
    etag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1')
      .toLowerCase() === md5
  );
}

async function* watched(
  { source, part, onSent }: PartDelivery,
  lease: Lease,
  md5: Md5,
  stall: Stall,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let sent = 0;
  try {
    for await (const piece of source.read(part.start, part.end, lease.allocate)) {
      stall.moved();
      md5.update(piece);
      yield piece as Uint8Array<ArrayBuffer>;
      sent += piece.length;
      onSent(sent);
    }
  } catch (error) {
    stall.sourceFailure = error;
    throw error;
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
