import { MissingFileError } from '../errors.ts';
import { blobSource } from '../source.ts';
import { PortableMd5 } from './md5.ts';
import { type Platform, sleep } from './platform.ts';

/** Chunks are combined into Blobs of this size, which the browser can move to disk. */
const BLOB_BYTES = 8 * 1024 * 1024;

/** A page or a web worker: no environment variables, files or terminal, and no streaming of request bodies. */
export const browserPlatform: Platform = {
  env: () => undefined,
  logger: console,
  // A page may not set its User-Agent.
  headers: {},
  terminal: () => null,
  md5: () => new PortableMd5(),
  sleep,
  streamsBodies: false,
  openPath: async () => {
    throw new MissingFileError('A browser cannot open a path: pass a File or Blob.', {
      code: 'missing_file',
    });
  },
  async spool(chunks, name) {
    const blobs: Blob[] = [];
    let gathered: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    for await (const chunk of chunks) {
      gathered.push(new Uint8Array(chunk));
      bytes += chunk.length;
      if (bytes < BLOB_BYTES) continue;
      blobs.push(new Blob(gathered));
      gathered = [];
      bytes = 0;
    }
    return blobSource(new Blob([...blobs, ...gathered]), name);
  },
};
