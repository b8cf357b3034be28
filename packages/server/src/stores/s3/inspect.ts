import { randomUUID } from 'node:crypto';
import type { S3BlobStore } from './blobs.ts';

const ANSWER_MS = 5_000;
const URL_MS = 60_000;
const ENCRYPTION = 'x-amz-server-side-encryption';

export interface S3Inspection {
  /** What became of a part that was put to its upload URL, as a client would; null when all is well. */
  readonly uploadProblem: string | null;
  /** How far the clock of S3 is ahead of ours; null when it does not tell. */
  readonly clockAheadMs: number | null;
  /** Web pages whose browsers could not upload, and why. */
  readonly corsProblems: readonly string[];
}

/**
 * What `undertone doctor` wants to know: writes, lists, reads and erases two small objects, one of them the way clients do.
 * Rejects with StoreUnavailableError where it can say why that does not work.
 */
export async function inspectS3(store: S3BlobStore, origins: readonly string[]): Promise<S3Inspection> {
  const group = `doctor-${randomUUID()}`;
  try {
    const bytes = Buffer.from('undertone doctor');
    const { etag } = await store.write(group, 'by-us', onePiece(bytes));
    const read: Uint8Array[] = [];
    for await (const chunk of store.read(group, 'by-us', { etag })) read.push(chunk);
    if (!Buffer.concat(read).equals(bytes)) throw new Error('S3 gave back other bytes than it was given');
    const target = { id: group, expiresAt: Date.now() + URL_MS, baseUrl: '' };
    const [part] = await store.uploadUrls(target, [1]);
    return await tryUpload(store, group, part?.url ?? '', bytes, origins);
  } finally {
    await store.eraseGroup(group).catch(() => undefined);
  }
}

async function tryUpload(
  store: S3BlobStore,
  group: string,
  url: string,
  body: Buffer<ArrayBuffer>,
  origins: readonly string[],
): Promise<S3Inspection> {
  const nothing = { clockAheadMs: null, corsProblems: [] };
  try {
    const asked = Date.now();
    const put = await call(url, { method: 'PUT', body });
    const clockAheadMs = clockAhead(put.headers.get('date'), (asked + Date.now()) / 2);
    if (!put.ok) {
      const uploadProblem = `it was answered ${put.status} ${codeOf(await put.text())}`.trim();
      return { ...nothing, clockAheadMs, uploadProblem };
    }
    const arrived = (await store.arrived(group)).some(({ number }) => number === 1);
    const uploadProblem = arrived ? null : 'it was accepted there, but is not in the bucket';
    const found = await Promise.all(origins.map((origin) => corsProblem(url, origin, body)));
    return { uploadProblem, clockAheadMs, corsProblems: found.filter((problem) => problem !== null) };
  } catch (error) {
    const { cause, message } = error as Error;
    return { ...nothing, uploadProblem: `${new URL(url).origin}: ${(cause as Error)?.message || message}` };
  }
}

/** As a browser does: it asks first, and shows a page only those headers that it may see. */
async function corsProblem(url: string, origin: string, body: Buffer<ArrayBuffer>): Promise<string | null> {
  const preflight = await call(url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT' },
  });
  const allowed = (name: string) => preflight.headers.get(`access-control-allow-${name}`) ?? '';
  if (!['*', origin].includes(allowed('origin'))) return `${origin} is not allowed`;
  if (!/\bPUT\b|\*/.test(allowed('methods'))) return `${origin} may not PUT`;
  const put = await call(url, { method: 'PUT', body, headers: { origin } });
  const exposed = (put.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(/[\s,]+/);
  // Whether the ETag is an MD5 hangs on the encryption.
  const needed = ['etag', ...(put.headers.get(ENCRYPTION)?.startsWith('aws:kms') ? [ENCRYPTION] : [])];
  const hidden = exposed.includes('*') ? [] : needed.filter((name) => !exposed.includes(name));
  return hidden.length === 0 ? null : `${origin} does not get to see ${hidden.join(' and ')}`;
}

function call(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
}

/** The header has whole seconds: half of one is taken to have passed. */
function clockAhead(date: string | null, now: number): number | null {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? null : at + 500 - now;
}

function codeOf(xml: string): string {
  return /<Code>(\w+)<\/Code>/.exec(xml)?.[1] ?? '';
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
