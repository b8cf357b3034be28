import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { LONG_TIMEOUT_MS, SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import { S3BlobStore, type S3Options } from '../../src/stores/s3/blobs.ts';
import { s3PutSigner } from '../../src/stores/s3/presign.ts';
import { blobStoreSuite } from './blob-store-suite.ts';

Object.assign(process.env, S3_CREDENTIALS);

let server: S3Server;
before(async () => {
  server = await S3Server.shared();
});
after(() => server.remove());

async function options(more: Partial<S3Options> = {}): Promise<S3Options> {
  return {
    bucket: await server.newBucket(),
    prefix: 'undertone/',
    region: 'us-east-1',
    endpoint: server.endpoint,
    publicEndpoint: '',
    addressing: 'auto',
    answerMs: LONG_TIMEOUT_MS,
    ...more,
  };
}

async function* from(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function readAll(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const target = (more = {}) => ({
  id: 'g',
  expiresAt: Date.now() + 86_400_000,
  baseUrl: 'http://unused',
  ...more,
});

blobStoreSuite({
  name: 'S3',
  make: async () => {
    const shared = await options();
    const opened: S3BlobStore[] = [];
    return {
      open: async () => {
        const store = new S3BlobStore(shared);
        opened.push(store);
        return store;
      },
      close: async () => {
        for (const store of opened) store.close();
      },
    };
  },
});

describe('S3', () => {
  test('clients upload parts straight to the bucket, for an hour at most; the store sees their ETags and sizes', async () => {
    const store = new S3BlobStore(await options());
    const [one, two] = await store.uploadUrls(target(), [1, 2]);
    assert.ok(one?.url.startsWith(server.endpoint));
    const lifetime = Date.parse(one?.expires_at ?? '') - Date.now();
    assert.ok(lifetime > 3_590_000 && lifetime <= 3_600_000);
    assert.deepEqual(await store.arrived('g'), []);
    const bytes = randomBytes(1_000);
    for (const body of [randomBytes(10), bytes]) {
      const put = await fetch(one?.url ?? '', { method: 'PUT', body });
      assert.equal(put.status, 200, await put.text());
    }
    const put = await fetch(two?.url ?? '', { method: 'PUT', body: 'x' });
    const etag = createHash('md5').update(bytes).digest('hex');
    assert.deepEqual(await store.arrived('g'), [
      { number: 1, blob: '1', etag, bytes: 1_000 },
      { number: 2, blob: '2', etag: put.headers.get('etag')?.replaceAll('"', ''), bytes: 1 },
    ]);
    assert.deepEqual(await readAll(store.read('g', '1', { etag })), bytes);
    await assert.rejects(readAll(store.read('g', '1', { etag: 'another' })), /pre-?conditions?/i);
    store.close();
  });

  test('a URL permits nothing else', async () => {
    const store = new S3BlobStore(await options());
    const [{ url } = { url: '' }] = await store.uploadUrls(target(), [1]);
    const elsewhere = new URL(url);
    elsewhere.pathname = elsewhere.pathname.replace(/1$/, '2');
    for (const [address, init] of [
      [elsewhere, { method: 'PUT', body: 'x' }],
      [url, { method: 'GET' }],
      [url, { method: 'DELETE' }],
    ] as const) {
      assert.equal((await fetch(address, init)).status, 403);
    }
    store.close();
  });

  test('signatures match the official client, for paths and virtual hosts, with a session token', async () => {
    for (const sessionToken of [undefined, 'a+token/=']) {
      for (const forcePathStyle of [true, false]) {
        const credentials = {
          accessKeyId: 'AKIA+/=',
          secretAccessKey: 'secret',
          ...(sessionToken && { sessionToken }),
        };
        const client = new S3Client({
          region: 'eu-north-1',
          endpoint: 'https://s3.example.org:9000',
          forcePathStyle,
          credentials,
          requestChecksumCalculation: 'WHEN_REQUIRED',
        });
        const now = Date.UTC(2030, 0, 1);
        const command = new PutObjectCommand({ Bucket: 'voices', Key: 'under/g/17' });
        // Only for log readers.
        command.middlewareStack.add(
          (next) => (args) => {
            delete (args.request as { query: Record<string, unknown> }).query['x-id'];
            return next(args);
          },
          { step: 'build' },
        );
        const expected = new URL(
          await getSignedUrl(client, command, { expiresIn: 60, signingDate: new Date(now) }),
        );
        const sign = s3PutSigner({ credentials, region: 'eu-north-1', now, expiresInSeconds: 60 });
        const actual = new URL(sign(new URL(expected.origin + expected.pathname)));
        expected.searchParams.sort();
        actual.searchParams.sort();
        assert.equal(actual.href, expected.href);
      }
    }
  });

  test('URLs begin with the public address, by path or by virtual host', async () => {
    const at = async (more: Partial<S3Options>) => {
      const store = new S3BlobStore({ ...(await options()), bucket: 'voices', ...more });
      const [{ url } = { url: '' }] = await store.uploadUrls(target(), [3]);
      store.close();
      return url.split('?')[0];
    };
    const publicEndpoint = 'https://s3.example.org';
    assert.equal(await at({ publicEndpoint }), 'https://s3.example.org/voices/undertone/g/3');
    assert.equal(
      await at({ publicEndpoint, addressing: 'virtual' }),
      'https://voices.s3.example.org/undertone/g/3',
    );
    assert.equal(
      await at({ endpoint: '', region: 'eu-north-1', prefix: '' }),
      'https://voices.s3.eu-north-1.amazonaws.com/g/3',
    );
  });

  test('signing ten thousand URLs does not block the event loop', async () => {
    const store = new S3BlobStore(await options());
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    count();
    const urls = await store.uploadUrls(
      target(),
      Array.from({ length: 10_000 }, (_, i) => i + 1),
    );
    done = true;
    assert.equal(new Set(urls.map(({ url }) => url)).size, 10_000);
    assert.ok(turns > 10);
    store.close();
  });

  test('a group of several pages is listed and erased completely, and other groups stay', async () => {
    const store = new S3BlobStore(await options({ pageSize: 10 }));
    const numbers = Array.from({ length: 25 }, (_, i) => i + 1);
    for (const { url } of await store.uploadUrls(target(), numbers)) {
      assert.equal((await fetch(url, { method: 'PUT', body: 'x' })).status, 200);
    }
    await store.write('gg', '1', from(Buffer.from('stays')));
    assert.equal((await store.arrived('g')).length, 25);
    await store.eraseGroup('g');
    assert.deepEqual(await store.list('g'), []);
    assert.deepEqual(await store.groups(), ['gg']);
    store.close();
  });

  test('a blob larger than one multipart piece is written completely', async () => {
    const store = new S3BlobStore(await options());
    const chunk = randomBytes(1024 * 1024);
    const { bytes } = await store.write('g', '1', from(...Array.from({ length: 12 }, () => chunk)));
    assert.equal(bytes, 12 * chunk.length);
    const whole = await readAll(store.read('g', '1'));
    assert.ok(whole.equals(Buffer.concat(Array.from({ length: 12 }, () => chunk))));
    store.close();
  });

  test('an interrupted read resumes where it stopped', async () => {
    const shared = await options();
    const direct = new S3BlobStore(shared);
    const bytes = randomBytes(3_000_000);
    const { etag } = await direct.write('g', '1', from(bytes));
    let connections = 0;
    const { port } = new URL(server.endpoint);
    // The first three connections break after 700,000 bytes.
    const proxy = createServer((client) => {
      const store = connect(Number(port), '127.0.0.1');
      let left = connections++ < 3 ? 700_000 : Number.POSITIVE_INFINITY;
      client.pipe(store);
      store.on('data', (chunk) => {
        client.write(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) client.destroy();
      });
      for (const socket of [client, store]) socket.on('error', () => undefined);
      client.on('close', () => store.destroy());
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const flaky = new S3BlobStore({ ...shared, endpoint });
    assert.ok((await readAll(flaky.read('g', '1', { start: 5, etag }))).equals(bytes.subarray(5)));
    assert.ok(connections > 3, 'it was interrupted');
    flaky.close();
    direct.close();
    proxy.close();
  });

  test('what a write check left behind in a fault is removed by the next check of any process', async () => {
    const shared = await options();
    const { port } = new URL(server.endpoint);
    let connections = 0;
    const stored = Promise.withResolvers<void>();
    // The first connection reaches the store, but no answer comes back; the others reach nothing.
    const proxy = createServer((client) => {
      client.on('error', () => undefined);
      if (connections++ > 0) return client.resume();
      const store = connect(Number(port), '127.0.0.1');
      store.on('data', () => stored.resolve()).on('error', () => undefined);
      return client.pipe(store);
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const silent = new S3BlobStore({ ...shared, endpoint, answerMs: 300 });
    await assert.rejects(silent.checkWritable(), StoreUnavailableError);
    await stored.promise;
    const s3 = new S3Client({ endpoint: server.endpoint, region: 'us-east-1', forcePathStyle: true });
    const left = async () => {
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: shared.bucket }));
      return Contents.map(({ Key }) => Key);
    };
    assert.deepEqual(await left(), ['undertone/.writable']);
    const other = new S3BlobStore(shared);
    await other.checkWritable();
    assert.deepEqual(await left(), []);
    for (const client of [silent, other]) client.close();
    s3.destroy();
    proxy.close();
  });

  test('every page of a slow list has its own budget, longer than that of an answer', async () => {
    const shared = await options({ answerMs: 1_000, longMs: LONG_TIMEOUT_MS, pageSize: 1 });
    const direct = new S3BlobStore({ ...shared, answerMs: LONG_TIMEOUT_MS });
    for (const group of ['g1', 'g2']) await direct.write(group, '1', from(randomBytes(10)));
    const { port } = new URL(server.endpoint);
    const proxy = createServer((client) => {
      const store = connect(Number(port), '127.0.0.1');
      client.pipe(store);
      store.on('data', (chunk) => setTimeout(() => client.write(chunk), 1_500));
      for (const socket of [client, store]) socket.on('error', () => undefined);
      client.on('close', () => store.destroy());
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const slow = new S3BlobStore({ ...shared, endpoint });
    assert.deepEqual((await slow.groups()).sort(), ['g1', 'g2']);
    await assert.rejects(slow.erase('g1', '1'), StoreUnavailableError);
    slow.close();
    direct.close();
    proxy.close();
  });

  test('problems are reported clearly and in time', async () => {
    const good = await options({ answerMs: SHORT_TIMEOUT_MS });
    const cases: [Partial<S3Options>, RegExp][] = [
      [{ endpoint: 'http://127.0.0.1:1' }, /cannot be reached/],
      [{ bucket: 'not-there-at-all' }, /bucket does not exist/],
    ];
    for (const [wrong, words] of cases) {
      const store = new S3BlobStore({ ...good, ...wrong });
      const start = performance.now();
      await assert.rejects(store.checkWritable(), (error) => {
        assert.ok(error instanceof StoreUnavailableError, String(error));
        assert.match(error.reason, words);
        return true;
      });
      assert.ok(performance.now() - start < 3 * SHORT_TIMEOUT_MS);
      store.close();
    }
    Object.assign(process.env, { AWS_SECRET_ACCESS_KEY: 'wrong' });
    try {
      const store = new S3BlobStore(good);
      await assert.rejects(store.groups(), /refuses the credentials/);
      store.close();
    } finally {
      Object.assign(process.env, S3_CREDENTIALS);
    }
  });
});
