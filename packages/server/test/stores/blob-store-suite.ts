// Tests for every BlobStore.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { BlobStore, WriteOptions } from '../../src/stores/blobs.ts';

/** A BlobStore implementation. */
export interface BlobsFactory {
  readonly name: string;
  make(): Promise<TestBlobs>;
}

export interface TestBlobs {
  /** Each call is another process on the same store. */
  open(): Promise<BlobStore>;
  close(): Promise<void>;
}

export function blobStoreSuite(factory: BlobsFactory): void {
  describe(`blobs in ${factory.name}`, () => {
    let blobs: TestBlobs;
    let store: BlobStore;
    let other: BlobStore;

    before(async () => {
      blobs = await factory.make();
      store = await blobs.open();
      other = await blobs.open();
    });
    beforeEach(async () => {
      for (const group of await store.groups()) await store.eraseGroup(group);
    });
    after(() => blobs.close());

    async function* from(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
      yield* chunks;
    }
    async function read(
      group: string,
      name: string,
      range?: { start?: number; end?: number },
    ): Promise<Buffer> {
      const chunks: Uint8Array[] = [];
      for await (const chunk of other.read(group, name, range)) chunks.push(chunk);
      return Buffer.concat(chunks);
    }
    const names = async (group: string) => (await other.list(group)).map(({ name }) => name);

    test('another process reads back exactly what was written, and the ETag is its MD5', async () => {
      const chunks = [randomBytes(1), randomBytes(300_000), Buffer.alloc(0), randomBytes(70_000)];
      const whole = Buffer.concat(chunks);
      const written = await store.write('g', '1-a', from(...chunks), { length: whole.length });
      assert.deepEqual(written, {
        bytes: whole.length,
        etag: createHash('md5').update(whole).digest('hex'),
      });
      assert.deepEqual(await read('g', '1-a'), whole);
      const [info] = await other.list('g');
      assert.equal(info?.name, '1-a');
      assert.ok(Math.abs((info?.modifiedAt ?? 0) - Date.now()) < 60_000);
    });

    test('a range of a blob can be read', async () => {
      const bytes = randomBytes(600_000);
      await store.write('g', '1-a', from(bytes));
      for (const [start, end] of [
        [0, 4],
        [299_999, 300_001],
        [599_999, 600_000],
        [5, 5],
        [599_990, 700_000],
      ] as const) {
        assert.deepEqual(
          await read('g', '1-a', { start, end }),
          bytes.subarray(start, end),
          `${start} to ${end}`,
        );
      }
      assert.deepEqual(await read('g', '1-a', { start: 10 }), bytes.subarray(10));
      assert.deepEqual(await read('g', '1-a', { end: 10 }), bytes.subarray(0, 10));
    });

    test('a reader that stops early releases the blob', async () => {
      await store.write('g', '1-a', from(randomBytes(600_000)));
      for await (const chunk of other.read('g', '1-a')) {
        assert.ok(chunk.length < 600_000);
        break;
      }
      await store.eraseGroup('g');
      await assert.rejects(read('g', '1-a'));
    });

    describe('nothing is stored when the bytes', () => {
      async function breaks(
        bytes: AsyncIterable<Uint8Array>,
        expected: RegExp,
        options?: WriteOptions,
      ): Promise<void> {
        await assert.rejects(store.write('g', '1-a', bytes, options), expected);
        await assert.rejects(read('g', '1-a'));
        assert.deepEqual(await names('g'), []);
      }

      test('are interrupted', () =>
        breaks(
          (async function* () {
            yield randomBytes(100_000);
            throw new Error('the client disconnected');
          })(),
          /disconnected/,
        ));

      test('are fewer or more than announced', async () => {
        await breaks(from(randomBytes(9)), /10 bytes/, { length: 10 });
        await breaks(from(randomBytes(11)), /10 bytes/, { length: 10 });
      });

      test('are cancelled, even while the source hangs', async () => {
        const stop = new AbortController();
        let askedAgain = () => {};
        const asked = new Promise<void>((resolve) => {
          askedAgain = resolve;
        });
        const bytes = (async function* () {
          yield randomBytes(100_000);
          askedAgain();
          await new Promise(() => {});
        })();
        const written = breaks(bytes, /enough/, { signal: stop.signal });
        await asked;
        stop.abort(new Error('enough'));
        await written;
        await breaks(from(randomBytes(1)), /enough/, { signal: stop.signal });
      });
    });

    test('cancelling a write closes its source', async () => {
      let told = false;
      const bytes = (async function* () {
        try {
          for (;;) yield randomBytes(10);
        } finally {
          told = true;
        }
      })();
      const stop = new AbortController();
      setImmediate(() => stop.abort(new Error('enough')));
      await assert.rejects(store.write('g', '1-a', bytes, { signal: stop.signal }), /enough/);
      await new Promise(setImmediate);
      assert.equal(told, true);
    });

    test('a blob cannot be read before it is complete', async () => {
      const bytes = (async function* () {
        yield randomBytes(10);
        await assert.rejects(read('g', '1-a'));
      })();
      await store.write('g', '1-a', bytes);
      assert.deepEqual(await names('g'), ['1-a']);
    });

    test('a group can be erased while one of its blobs is being written', async () => {
      const bytes = (async function* () {
        yield randomBytes(10);
        await other.eraseGroup('g');
        yield randomBytes(10);
      })();
      await store.write('g', '1-a', bytes).catch(() => undefined);
      await other.eraseGroup('g');
      assert.deepEqual(await names('g'), []);
      assert.deepEqual(await store.groups(), []);
    });

    test('erasing removes everything, and erasing twice is harmless', async () => {
      await store.write('g', '1-a', from(Buffer.from('1')));
      await store.write('g', '2-b', from(Buffer.from('2')));
      await store.write('h', '1-c', from(Buffer.from('3')));
      assert.deepEqual((await store.groups()).sort(), ['g', 'h']);
      const paged: string[] = [];
      for await (const page of store.groupPages()) paged.push(...page);
      assert.deepEqual(paged.sort(), ['g', 'h']);
      await other.erase('g', '1-a');
      await other.erase('g', '1-a');
      assert.deepEqual(await names('g'), ['2-b']);
      await other.eraseGroup('g');
      await other.eraseGroup('g');
      assert.deepEqual(await names('g'), []);
      assert.deepEqual(await store.groups(), ['h']);
    });

    test('unsafe names are rejected', async () => {
      for (const bad of ['..', '.', '', 'a/b', '../x', '/etc/passwd', '\0', 'a\\..\\b']) {
        await assert.rejects(store.write(bad, 'x', from()));
        await assert.rejects(store.write('g', bad, from()));
        await assert.rejects(read(bad, 'x'));
        await assert.rejects(store.erase('g', bad));
        await assert.rejects(store.eraseGroup(bad));
      }
      assert.deepEqual(await store.groups(), []);
    });

    test('each requested part has its own URL', async () => {
      const request = { id: 'g', expiresAt: Date.now() + 60_000, baseUrl: 'http://host:1/base' };
      const urls = await store.uploadUrls(request, [2, 3, 7]);
      assert.deepEqual(
        urls.map(({ part_number }) => part_number),
        [2, 3, 7],
      );
      assert.equal(new Set(urls.map(({ url }) => new URL(url).href)).size, 3);
    });

    test('the write check succeeds and leaves nothing behind', async () => {
      await store.checkWritable();
      assert.deepEqual(await store.groups(), []);
    });
  });
}
