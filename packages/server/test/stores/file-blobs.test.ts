import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { MUST_MOUNT, mountSmallDisk } from '@undertone/testing/small-disk';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import { FileBlobStore } from '../../src/stores/files/blobs.ts';
import { Secrets } from '../../src/stores/signing.ts';
import { blobStoreSuite } from './blob-store-suite.ts';
import { tempDir } from './support/factories.ts';

blobStoreSuite({
  name: 'files',
  make: async () => {
    const dataDir = await tempDir();
    return {
      open: async () => new FileBlobStore(join(dataDir, 'uploads'), await Secrets.open(dataDir)),
      close: async () => {},
    };
  },
});

async function* from(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const isUnavailable = (words: RegExp) => (error: unknown) =>
  error instanceof StoreUnavailableError && words.test(error.reason);

test('an unfinished blob is listed, because it uses space', async () => {
  const dataDir = await tempDir();
  const store = new FileBlobStore(join(dataDir, 'uploads'), await Secrets.open(dataDir));
  const bytes = (async function* () {
    yield randomBytes(10);
    assert.equal((await store.list('g')).length, 1);
  })();
  await store.write('g', '1-a', bytes);
  assert.equal((await store.list('g')).length, 1);
});

test('only the owner of the process can read recordings', async () => {
  const dataDir = await tempDir();
  const store = new FileBlobStore(join(dataDir, 'uploads'), await Secrets.open(dataDir));
  await store.write('g', '1-a', from(randomBytes(10)));
  for (const path of ['uploads', 'uploads/g'])
    assert.equal((await stat(join(dataDir, path))).mode & 0o777, 0o700);
  for (const path of ['uploads/g/1-a', 'presign.key']) {
    assert.equal((await stat(join(dataDir, path))).mode & 0o777, 0o600);
  }
});

test('a full or read-only disk is reported clearly, leaves no partial blob, and the store recovers', async () => {
  const dataDir = await tempDir();
  const disk = mountSmallDisk(dataDir);
  assert.ok(disk, MUST_MOUNT);
  try {
    const store = new FileBlobStore(join(dataDir, 'uploads'), await Secrets.open(dataDir));
    const kept = randomBytes(10_000);
    await store.write('g', '1-a', from(kept));
    disk.fill();
    await assert.rejects(store.write('g', '2-b', from(randomBytes(9_000))), isUnavailable(/disk is full/));
    await assert.rejects(store.checkWritable(), isUnavailable(/disk is full/));
    assert.deepEqual(await readdir(join(dataDir, 'uploads', 'g')), ['1-a']);
    assert.deepEqual(await readdir(join(dataDir, 'uploads')), ['g']);
    disk.empty();
    await store.write('g', '2-b', from(randomBytes(9_000)));
    disk.protect(true);
    for (const refused of [
      () => store.write('g', '3-c', from()),
      () => store.erase('g', '1-a'),
      () => store.checkWritable(),
    ]) {
      await assert.rejects(refused, isUnavailable(/cannot be written to/));
    }
    const read = [];
    for await (const chunk of store.read('g', '1-a')) read.push(chunk);
    assert.deepEqual(Buffer.concat(read), kept);
    disk.protect(false);
    await store.eraseGroup('g');
    await store.checkWritable();
  } finally {
    disk.unmount();
  }
});

const NOW = Date.UTC(2030, 0, 1);
const PART = { requestId: '6f0c1a8e-0000-4000-8000-00000000000a', partNumber: 7, expires: NOW / 1000 + 60 };

async function signed(secrets: Secrets, part = PART): Promise<{ url: URL; signature: string }> {
  const target = { id: part.requestId, expiresAt: part.expires * 1000, baseUrl: 'https://host/base' };
  const [made] = await secrets.urls(target, [part.partNumber]);
  const url = new URL(made?.url ?? '');
  return { url, signature: url.searchParams.get('signature') ?? '' };
}

test('a URL permits one part of one request until it expires, and nothing else', async () => {
  let now = NOW;
  const secrets = new Secrets(randomBytes(32), () => now);
  const { url, signature } = await signed(secrets);
  assert.equal(url.origin + url.pathname, `https://host/base/v1/asynch/upload/${PART.requestId}/parts/7`);
  assert.equal(url.searchParams.get('expires'), String(PART.expires));
  assert.equal(secrets.verify(PART, signature), 'ok');
  assert.equal(secrets.verify({ ...PART, requestId: PART.requestId.toUpperCase() }, signature), 'ok');
  for (const other of [
    { ...PART, partNumber: 8 },
    { ...PART, requestId: PART.requestId.replace('a', 'b') },
    { ...PART, expires: PART.expires + 1 },
  ]) {
    assert.equal(secrets.verify(other, signature), 'wrong_signature');
  }
  for (const wrong of ['', 'x', signature.slice(1), `${signature}AAAA`, `A${signature.slice(2)}B`]) {
    assert.equal(secrets.verify(PART, wrong), 'wrong_signature');
  }
  assert.equal(new Secrets(randomBytes(32), () => now).verify(PART, signature), 'wrong_signature');
  now = PART.expires * 1000 - 1;
  assert.equal(secrets.verify(PART, signature), 'ok');
  now += 1;
  assert.equal(secrets.verify(PART, signature), 'expired');
});

test('signing ten thousand URLs does not block the event loop', async () => {
  const secrets = new Secrets(randomBytes(32));
  const numbers = Array.from({ length: 10_000 }, (_, i) => i + 1);
  let turns = 0;
  let done = false;
  (function count() {
    turns++;
    if (!done) setImmediate(count);
  })();
  const urls = await secrets.urls({ id: 'g', expiresAt: NOW, baseUrl: 'http://h' }, numbers);
  done = true;
  assert.equal(new Set(urls.map(({ url }) => url)).size, 10_000);
  assert.ok(turns > 10, `${turns}`);
});

test('concurrent starts create one secret, readable only by its owner', async () => {
  const dataDir = await tempDir();
  const opened = await Promise.all(Array.from({ length: 8 }, () => Secrets.open(dataDir, () => NOW)));
  const { signature } = await signed(opened[0] as Secrets);
  for (const secrets of opened) assert.equal(secrets.verify(PART, signature), 'ok');
  assert.deepEqual(await readdir(dataDir), ['presign.key']);
  await chmod(join(dataDir, 'presign.key'), 0o644);
  assert.equal((await Secrets.open(dataDir, () => NOW)).verify(PART, signature), 'ok', 'after a restart');
  assert.equal((await stat(join(dataDir, 'presign.key'))).mode & 0o777, 0o600);
  assert.equal((await readFile(join(dataDir, 'presign.key'))).length, 32);
  await writeFile(join(dataDir, 'presign.key'), 'short');
  await assert.rejects(Secrets.open(dataDir), /damaged.*Delete it/);
});
