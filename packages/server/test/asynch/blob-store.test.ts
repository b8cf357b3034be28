import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { BlobStore } from '../../src/asynch/stores/blob-store.ts';
import { blobStores, Clock, type Opened } from './support/stores.ts';

for (const { name, fresh } of blobStores) {
  describe(`blobs in ${name}`, () => {
    let store: BlobStore;
    let other: BlobStore;
    let opened: Opened<BlobStore>;

    beforeEach(async () => {
      opened = await fresh(new Clock());
      store = opened.open();
      other = opened.open();
    });
    afterEach(() => opened.close());

    async function write(group: string, blob: string, ...chunks: Buffer[]): Promise<void> {
      const writer = await store.create(group, blob);
      for (const chunk of chunks) await writer.write(chunk);
      await writer.finish();
    }
    async function read(group: string, blob: string): Promise<Buffer> {
      const chunks: Uint8Array[] = [];
      for await (const chunk of other.read(group, blob)) chunks.push(chunk);
      return Buffer.concat(chunks);
    }

    test('what was finished is read back by another process, byte for byte', async () => {
      const chunks = [randomBytes(1), randomBytes(300_000), Buffer.alloc(0), randomBytes(70_000)];
      await write('g', '1-a', ...chunks);
      assert.ok((await read('g', '1-a')).equals(Buffer.concat(chunks)));
      const [info] = await other.list('g');
      assert.equal(info?.name, '1-a');
      assert.ok(Math.abs((info?.modifiedAt ?? 0) - Date.now()) < 60_000);
    });

    test('what was not finished cannot be read', async () => {
      const writer = await store.create('g', '1-a');
      await writer.write(randomBytes(10));
      await assert.rejects(read('g', '1-a'));
      await writer.discard();
      assert.deepEqual(await store.list('g'), []);
    });

    test('erasing leaves nothing, and erasing nothing is harmless', async () => {
      await write('g', '1-a', Buffer.from('1'));
      await write('g', '2-b', Buffer.from('2'));
      await write('h', '1-c', Buffer.from('3'));
      assert.deepEqual((await store.groups()).sort(), ['g', 'h']);
      await other.erase('g', '1-a');
      await other.erase('g', '1-a');
      assert.deepEqual(
        (await store.list('g')).map((blob) => blob.name),
        ['2-b'],
      );
      await other.eraseGroup('g');
      await other.eraseGroup('g');
      assert.deepEqual(await store.list('g'), []);
      assert.deepEqual(await store.groups(), ['h']);
    });

    test('names that lead elsewhere are refused', async () => {
      for (const bad of ['..', '.', '', 'a/b', '../x', '/etc/passwd', '\0', 'a\\..\\b']) {
        await assert.rejects(async () => store.create(bad, 'x'));
        await assert.rejects(async () => store.create('g', bad));
        await assert.rejects(async () => store.eraseGroup(bad));
      }
      assert.deepEqual(await store.groups(), []);
    });

    test('says that it can be written to, and leaves no trace of having tried', async () => {
      await store.checkWritable();
      assert.deepEqual(await store.groups(), []);
    });
  });
}
