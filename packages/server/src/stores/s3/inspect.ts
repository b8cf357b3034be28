import { randomUUID } from 'node:crypto';
import type { S3BlobStore } from './blobs.ts';

const ANSWER_MS = 5_000;
const URL_MS = 60_000;
const ENCRYPTION = 'x-amz-server-side-encryption';

export interface S3Inspection {
  /** Why a part could not be uploaded as a client would; null if it worked. */
  readonly uploadProblem: string | null;
  /** S3's clock minus ours; null if unknown. */
  readonly clockAheadMs: number | null;
  /** Origins whose pages could not upload, and why. */
  readonly corsProblems: readonly string[];
}

/**
 * For `undertone doctor`: writes, lists, reads and erases two small objects, one of them as clients do. Rejects with
 * StoreUnavailableError if the cause is known.
 */
export async function inspectS3(store: S3BlobStore, origins: readonly string[]): Promise<S3Inspection> {
  const group = `doctor-${randomUUID()}`;
  try {
    const bytes = Buffer.from('undertone doctor');
    const { etag } = await store.write(group, 'by-us', onePiece(bytes));
    const read: Uint8Array[] = [];
    for await (const chunk of store.read(group, 'by-us', { etag })) read.push(chunk);
    if (!Buffer.concat(read).equals(bytes)) throw new Error('S3 returned other bytes than were written');
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
      const uploadProblem = `the answer was ${put.status} ${codeOf(await put.text())}`.trim();
      return { ...nothing, clockAheadMs, uploadProblem };
    }
    const arrived = (await store.arrived(group)).some(({ number }) => number === 1);
    const uploadProblem = arrived ? null : 'S3 accepted it, but it is not in the bucket';
    const found = await Promise.all(origins.map((origin) => corsProblem(url, origin, body)));
    return { uploadProblem, clockAheadMs, corsProblems: found.filter((problem) => problem !== null) };
  } catch (error) {
    const { cause, message } = error as Error;
    return { ...nothing, uploadProblem: `${new URL(url).origin}: ${(cause as Error)?.message || message}` };
  }
}

/** As a browser does: a preflight, then only exposed headers are visible to the page. */
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
  // Encryption decides whether the ETag is an MD5.
  const needed = ['etag', ...(put.headers.get(ENCRYPTION)?.startsWith('aws:kms') ? [ENCRYPTION] : [])];
  const hidden = exposed.includes('*') ? [] : needed.filter((name) => !exposed.includes(name));
  return hidden.length === 0 ? null : `${origin} cannot read ${hidden.join(' and ')}`;
}

function call(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
}

/** The header has whole seconds, so on average half a second has passed. */
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
