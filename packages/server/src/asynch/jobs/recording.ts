import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type DecodedAudio, openAudio } from '@undertone/audio';
import type { BlobStore } from '../stores/blob-store.ts';
import type { Part } from '../stores/request-store.ts';

interface RecordingOptions {
  readonly blobs: BlobStore;
  readonly requestId: string;
  readonly parts: readonly Part[];
  /** Where a recording is put together that has to be one file. */
  readonly scratchDir: string;
  readonly ffmpegPath: string | null;
  readonly signal: AbortSignal;
}

/** Longer MP4 files with their index at the end cannot be turned around in memory. */
const MOST_IN_MEMORY = 32 * 1024 * 1024;

/** The parts of an upload as one recording again, read one after another where they lie. */
export class Recording {
  readonly #options: RecordingOptions;
  readonly #totalBytes: number;
  #readBytes = 0;
  #filePath: string | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
    this.#totalBytes = options.parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Aborted when nobody wants the recording heard any more. */
  get signal(): AbortSignal {
    return this.#options.signal;
  }

  /** The share of the bytes that was read. */
  get progress(): number {
    return Math.min(1, this.#readBytes / this.#totalBytes);
  }

  async open(): Promise<DecodedAudio> {
    const { signal, ffmpegPath } = this.#options;
    if (this.#totalBytes > MOST_IN_MEMORY && (await this.#isMp4())) {
      await this.#putTogether();
    }
    return openAudio(this.#bytes(), {
      signal,
      ffmpegPath,
      expectedBytes: this.#totalBytes,
      filePath: this.#filePath,
    });
  }

  async close(): Promise<void> {
    if (this.#filePath !== undefined) await rm(this.#filePath, { force: true });
  }

  async *#bytes(): AsyncGenerator<Uint8Array> {
    const { blobs, requestId, parts } = this.#options;
    this.#readBytes = 0;
    for (const { blob } of parts) {
      for await (const chunk of blobs.read(requestId, blob)) {
        this.#readBytes += chunk.length;
        yield chunk;
      }
    }
  }

  async #isMp4(): Promise<boolean> {
    for await (const chunk of this.#bytes())
      return Buffer.from(chunk.subarray(4, 8)).equals(Buffer.from('ftyp'));
    return false;
  }

  /** ffmpeg has to seek in such a file, and it cannot seek in parts. */
  async #putTogether(): Promise<void> {
    const { scratchDir, requestId, signal } = this.#options;
    await mkdir(scratchDir, { recursive: true, mode: 0o700 });
    const path = join(scratchDir, requestId);
    this.#filePath = path;
    const file = await open(path, 'w', 0o600);
    try {
      for await (const chunk of this.#bytes()) {
        signal.throwIfAborted();
        await file.writeFile(chunk);
      }
    } finally {
      await file.close();
    }
  }
}
