import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { streamableMp4 } from '../src/ffmpeg/mp4.ts';
import { memorySource } from '../src/index.ts';
import { collect } from './support/sounds.ts';

function box(type: string, ...bodies: Uint8Array[]): Buffer {
  const body = Buffer.concat(bodies);
  const head = Buffer.from(`    ${type}`);
  head.writeUInt32BE(body.length + 8);
  return Buffer.concat([head, body]);
}

function longBox(type: string, body: Uint8Array): Buffer {
  const head = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from(type), Buffer.alloc(8)]);
  head.writeBigUInt64BE(BigInt(body.length + 16), 8);
  return Buffer.concat([head, body]);
}

function table(type: 'stco' | 'co64', offsets: number[]): Buffer {
  const bytes = type === 'stco' ? 4 : 8;
  const body = Buffer.alloc(8 + offsets.length * bytes);
  body.writeUInt32BE(offsets.length, 4);
  offsets.forEach((offset, i) => {
    body.writeUIntBE(offset, 8 + i * bytes + bytes - 4, 4);
  });
  return box(type, body);
}

const index = (offsets: number[], type: 'stco' | 'co64' = 'stco'): Buffer =>
  box(
    'moov',
    box('mvhd', Buffer.alloc(20)),
    box('trak', box('mdia', box('minf', box('stbl', table(type, offsets))))),
  );

const start = box('ftyp', Buffer.from('M4A \0\0\0\0'));
const sound = box('mdat', Buffer.from('the sound of a voice'));
const pieceAt = start.length + 8 + 4; // "sound"

const stream = async (file: Uint8Array): Promise<Buffer> =>
  Buffer.concat(await collect(streamableMp4(memorySource(file))));

describe('the index of an MP4 file', () => {
  for (const type of ['stco', 'co64'] as const) {
    it(`is sent before the sound, and still points at it (${type})`, async () => {
      const file = Buffer.concat([start, sound, index([pieceAt], type), box('free')]);
      const sent = await stream(file);
      assert.equal(sent.length, file.length);
      assert.ok(sent.indexOf('moov') < sent.indexOf('mdat'));
      const offset = sent.readUInt32BE(sent.indexOf(type) + 4 + 8 + (type === 'stco' ? 0 : 4));
      assert.equal(sent.toString('latin1', offset, offset + 5), 'sound');
      assert.equal(sent.toString('latin1', sent.length - 4), 'free');
    });
  }

  it('is found after a sound box with a 64-bit size and other boxes', async () => {
    const long = longBox('mdat', Buffer.from('the sound of a voice'));
    const sent = await stream(Buffer.concat([start, box('free'), long, box('skip'), index([pieceAt])]));
    assert.ok(sent.indexOf('moov') < sent.indexOf('mdat'));
  });

  it('of an old QuickTime file, which has no ftyp box, is sent first of all', async () => {
    const file = Buffer.concat([box('wide'), sound, index([8 + 8 + 4])]);
    const sent = await stream(file);
    assert.equal(sent.length, file.length);
    assert.equal(sent.toString('latin1', 4, 8), 'moov');
    const offset = sent.readUInt32BE(sent.indexOf('stco') + 4 + 8);
    assert.equal(sent.toString('latin1', offset, offset + 5), 'sound');
  });

  it('is not moved if it comes first, is missing or invalid', async () => {
    for (const file of [
      Buffer.concat([start, index([0]), sound]),
      Buffer.concat([start, sound]),
      Buffer.concat([start, sound, Buffer.from([0, 0, 0, 3]), Buffer.from('moov')]),
      Buffer.alloc(0),
    ]) {
      assert.deepEqual(await stream(file), file);
    }
  });

  it('is read without reading the sound before it', async () => {
    const long = Buffer.concat([start, box('mdat', Buffer.alloc(5_000_000)), index([pieceAt])]);
    const source = memorySource(long);
    const reads: number[] = [];
    const sent = streamableMp4({
      size: source.size,
      read(from = 0, to = source.size) {
        reads.push(to - from);
        return source.read(from, to);
      },
    });
    await sent.next();
    assert.ok(
      reads.every((bytes) => bytes < 1000),
      `${reads}`,
    );
    await sent.return(undefined);
  });

  it('is refused if it is too large or has too many boxes', async () => {
    const parts = Buffer.concat(new Array(1_000_000).fill(box('trak')));
    for (const body of [Buffer.alloc(33 * 1024 * 1024), parts]) {
      const file = Buffer.concat([start, sound, box('moov', body)]);
      await assert.rejects(stream(file), { code: 'unreadable_audio', message: /index .* too large/ });
    }
  });

  it('of a damaged file is moved or not, without losing a byte', async () => {
    const file = Buffer.concat([start, sound, index([pieceAt, 0xffff_ffff, 0]), index([1], 'co64')]);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(file.length - 1), fc.oneof(fc.constantFrom(0, 1, 255), fc.nat(255))), {
          maxLength: 5,
        }),
        fc.nat(file.length),
        async (changes, length) => {
          const damaged = Buffer.from(file.subarray(0, length));
          for (const [at, value] of changes) damaged[at] = value;
          assert.equal((await stream(damaged)).length, damaged.length);
        },
      ),
      { seed: 8, numRuns: 1000 },
    );
  });
});
