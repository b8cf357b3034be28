import type { InitiateResult } from '@undertone/contract';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Reporter } from '../progress/reporter.ts';
import { PiecePool } from '../source/piece-pool.ts';
import type { AudioSource } from '../source/source.ts';
import type { Part } from './parts.ts';
import { sendPart } from './send-part.ts';
import type { UploadSettings } from './upload.ts';

/** Sends parts, a few at a time, and keeps their MD5s. */
export class Delivery {
  readonly #context: Context;
  readonly #source: AudioSource;
  readonly #ticket: InitiateResult;
  readonly #settings: UploadSettings;
  readonly #reporter: Reporter;
  readonly #urls: ReadonlyMap<number, string>;
  readonly #md5s = new Map<number, string>();
  readonly #sent = new Map<number, number>();
  readonly #pool = new PiecePool();
  #sentBytes = 0;

  constructor(
    context: Context,
    source: AudioSource,
    ticket: InitiateResult,
    settings: UploadSettings,
    reporter: Reporter,
  ) {
    this.#context = context;
    this.#source = source;
    this.#ticket = ticket;
    this.#settings = settings;
    this.#reporter = reporter;
    const base = context.config.asynchUrl;
    this.#urls = new Map(
      ticket.presigned_urls.map((entry) => [entry.part_number, new URL(entry.url, base).href]),
    );
  }

  /** The first part that cannot be delivered stops the others. */
  async send(parts: readonly Part[]): Promise<void> {
    const stop = new AbortController();
    const { signal } = this.#settings;
    const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    const waiting = parts.values();
    const lane = async () => {
      for (const part of waiting) await this.#sendOne(part, either);
    };
    const lanes = Array.from({ length: Math.min(this.#context.config.maxThreads, parts.length) }, () =>
      lane().catch((error: unknown) => {
        stop.abort(error);
        throw error;
      }),
    );
    await Promise.allSettled(lanes);
    signal?.throwIfAborted();
    stop.signal.throwIfAborted();
  }

  receipt(): { request_id: string; upload_id: string; parts: { PartNumber: number; ETag: string }[] } {
    const { request_id, upload_id } = this.#ticket;
    const md5s = [...this.#md5s].sort(([a], [b]) => a - b);
    return {
      request_id,
      upload_id,
      parts: md5s.map(([number, md5]) => ({ PartNumber: number, ETag: `"${md5}"` })),
    };
  }

  async #sendOne(part: Part, signal: AbortSignal): Promise<void> {
    const url = this.#urls.get(part.number);
    if (url === undefined) {
      throw new Failure(`The service gave no address for part ${part.number}.`, { code: 'invalid_answer' });
    }
    const md5 = await sendPart(this.#context, {
      source: this.#source,
      part,
      url,
      maxRetries: this.#settings.maxRetries,
      signal,
      pool: this.#pool,
      onSent: (bytes) => this.#report(part, bytes),
    });
    this.#md5s.set(part.number, md5);
  }

  #report(part: Part, bytes: number): void {
    this.#sentBytes += bytes - (this.#sent.get(part.number) ?? 0);
    this.#sent.set(part.number, bytes);
    const sentBytes = this.#sentBytes;
    const totalBytes = this.#source.size;
    this.#reporter.report({
      status: 'uploading',
      progress: sentBytes / totalBytes,
      requestId: this.#ticket.request_id,
      sentBytes,
      totalBytes,
    });
  }
}
