import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { chmod, link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ASYNCH_PATHS, PATHS } from '@undertone/contract';
import type { PartUrl, UploadTarget } from './blobs.ts';
import { fromDisk } from './errors.ts';
import { nextSlice } from './slices.ts';

const PART_PATH = PATHS.asynch + ASYNCH_PATHS.part;

export const SECRET_FILE = 'presign.key';
const SECRET_BYTES = 32;

/** Signing ten thousand URLs in one turn would block the event loop. */
const SIGNED_PER_SLICE = 500;

export interface SignedPart {
  readonly requestId: string;
  readonly partNumber: number;
  /** Seconds since 1970. */
  readonly expires: number;
}

/**
 * The secret of this installation. It signs upload URLs and derives other secrets, such as those for webhooks.
 *
 * An upload URL permits one part of one request until it expires, and nothing else: all three are signed. It works without an
 * API key, so the key stays with the caller that asked for the URL.
 */
export class Secrets {
  readonly #secret: Buffer;
  readonly #now: () => number;

  constructor(secret: Buffer, now: () => number = Date.now) {
    this.#secret = secret;
    this.#now = now;
  }

  /** From SERVICE_SECRET, the same in every process. */
  static of(secret: string, now: () => number = Date.now): Secrets {
    return new Secrets(createHash('sha256').update(secret).digest(), now);
  }

  /** From a file in the data folder, which the first start creates. */
  static async open(dataDir: string, now: () => number = Date.now): Promise<Secrets> {
    try {
      return new Secrets(await readSecret(join(dataDir, SECRET_FILE)), now);
    } catch (error) {
      throw fromDisk(error);
    }
  }

  /** A secret for one purpose, always the same. Irreversible (HMAC). */
  derive(purpose: string): Buffer {
    return createHmac('sha256', this.#secret).update(`derive ${purpose}`).digest();
  }

  async urls({ id, expiresAt, baseUrl }: UploadTarget, partNumbers: readonly number[]): Promise<PartUrl[]> {
    const expires = Math.floor(expiresAt / 1000);
    const urls: PartUrl[] = [];
    for (const partNumber of partNumbers) {
      const signature = this.#sign({ requestId: id, partNumber, expires }).toString('base64url');
      const path = PART_PATH.replace(':request_id', id).replace(':part_number', String(partNumber));
      urls.push({
        part_number: partNumber,
        url: `${baseUrl}${path}?expires=${expires}&signature=${signature}`,
      });
      if (urls.length % SIGNED_PER_SLICE === 0) await nextSlice();
    }
    return urls;
  }

  verify(part: SignedPart, signature: string): 'ok' | 'wrong_signature' | 'expired' {
    const given = Buffer.from(signature, 'base64url');
    const expected = this.#sign(part);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'wrong_signature';
    return part.expires * 1000 <= this.#now() ? 'expired' : 'ok';
  }

  #sign({ requestId, partNumber, expires }: SignedPart): Buffer {
    return createHmac('sha256', this.#secret)
      .update(`PUT ${requestId.toLowerCase()} ${partNumber} ${expires}`)
      .digest();
  }
}

async function readSecret(path: string): Promise<Buffer> {
  const secret = (await readIfExists(path)) ?? (await makeSecret(path));
  if (secret.length !== SECRET_BYTES) {
    throw new Error(
      `${path} is damaged. Delete it and restart; unfinished uploads have to be started again.`,
    );
  }
  return secret;
}

/** The file appears only when complete, and never replaces one that another process made. */
async function makeSecret(path: string): Promise<Buffer> {
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.write(randomBytes(SECRET_BYTES));
    await file.sync();
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
  return readFile(path);
}

async function readIfExists(path: string): Promise<Buffer | null> {
  try {
    await chmod(path, 0o600);
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
