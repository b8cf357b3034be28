import { createHash, randomUUID } from 'node:crypto';
import { type BigIntStats, constants, openSync } from 'node:fs';
import { type FileHandle, open, stat, unlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };
import { itemsOf } from '../abort.ts';
import { MissingFileError, UndertoneError } from '../errors.ts';
import { baseName, fileChanged, newPiece } from '../source.ts';
import { type AudioSource, type Platform, sleep } from './platform.ts';

/** Node, Bun and Deno. */
export const nodePlatform: Platform = {
  env: (name) => process.env[name],
  // All levels go to stderr: stdout belongs to the program.
  logger: { debug: warn, info: warn, warn, error: (line) => console.error(line) },
  headers: { 'user-agent': `undertone-sdk/${manifest.version} (${runtimeName()})` },
  terminal: () =>
    process.stderr.isTTY
      ? {
          get columns() {
            return process.stderr.columns || 80;
          },
          write: (text) => void process.stderr.write(text),
        }
      : null,
  md5: () => {
    const hash = createHash('md5');
    return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
  },
  sleep,
  streamsBodies: true,
  openPath,
  spool,
};

function warn(line: string): void {
  console.warn(line);
}

function runtimeName(): string {
  const { bun, deno, node } = process.versions;
  if (bun) return `bun/${bun}`;
  return deno ? `deno/${deno}` : `node/${node}`;
}

async function openPath(pathOrUrl: string | URL, signal?: AbortSignal): Promise<AudioSource> {
  const path = typeof pathOrUrl === 'string' ? pathOrUrl : fileURLToPath(pathOrUrl);
  let handle: FileHandle | undefined;
  try {
    const kind = await stat(path);
    if (kind.isDirectory()) throw Object.assign(new Error('it is a folder'), { code: 'EISDIR' });
    if (kind.isFIFO()) return await spool(itemsOf(openPipe(path), signal), baseName(path));
    handle = await open(path, 'r');
    // A device has no length and can be read only once.
    if (!kind.isFile()) return await spool(itemsOf(handle.createReadStream(), signal), baseName(path));
    return await handleSource(handle, baseName(path));
  } catch (error) {
    await handle?.close();
    if (error instanceof UndertoneError || signal?.aborted) throw error;
    throw new MissingFileError(`${path} cannot be read: ${readErrorReason(error)}.`, {
      code: 'missing_file',
      cause: error,
    });
  }
}

/** Without blocking: a pipe without a writer would otherwise block a thread, and could not be closed. */
function openPipe(path: string): Socket {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

/** The temporary file is unlinked at once, so that a crash leaves no audio behind. */
async function spool(chunks: AsyncIterable<Uint8Array>, name: string): Promise<AudioSource> {
  const path = join(tmpdir(), `undertone-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
    for await (const chunk of chunks) await handle.appendFile(chunk);
    return await handleSource(handle, name);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function handleSource(handle: FileHandle, name: string): Promise<AudioSource> {
  const before = await handle.stat({ bigint: true });
  return {
    name,
    size: Number(before.size),
    async *read(start, end, allocate = newPiece) {
      for (let at = start; at < end; ) {
        const piece = allocate();
        const { bytesRead } = await handle.read(piece, 0, Math.min(piece.length, end - at), at);
        if (bytesRead === 0) throw fileChanged('became shorter');
        yield piece.subarray(0, bytesRead);
        at += bytesRead;
      }
    },
    async verify() {
      const now: BigIntStats = await handle.stat({ bigint: true });
      if (now.size !== before.size) throw fileChanged(now.size < before.size ? 'became shorter' : 'grew');
      if (now.mtimeNs !== before.mtimeNs) throw fileChanged('was written to');
    },
    close: () => handle.close(),
  };
}

function readErrorReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a folder, not a file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return message;
}
