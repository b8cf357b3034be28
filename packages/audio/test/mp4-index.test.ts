import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { moveIndexToFront, soundComesBeforeIndex } from '../src/foreign/mp4-index.ts';

function box(type: string, ...bodies: Uint8Array[]): Buffer {
  const body = Buffer.concat(bodies);
  const head = Buffer.from(`    ${type}`);
  head.writeUInt32BE(body.length + 8);
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

describe('the index of an MP4 file', () => {
  for (const type of ['stco', 'co64'] as const) {
    it(`moves to the front, and still points at the sound (${type})`, () => {
      const file = Buffer.concat([start, sound, index([pieceAt], type), box('free')]);
      assert.ok(soundComesBeforeIndex(file));
      const moved = Buffer.from(moveIndexToFront(file));
      assert.equal(moved.length, file.length);
      assert.equal(soundComesBeforeIndex(moved), false);
      const offset = moved.readUInt32BE(moved.indexOf(type) + 4 + 8 + (type === 'stco' ? 0 : 4));
      assert.equal(moved.toString('latin1', offset, offset + 5), 'sound');
      assert.equal(moved.toString('latin1', moved.length - 4), 'free');
    });
  }

  it('stays where it is when it is in front already, or missing', () => {
    for (const file of [
      Buffer.concat([start, index([0]), sound]),
      Buffer.concat([start, sound]),
      Buffer.alloc(0),
    ]) {
      assert.equal(moveIndexToFront(file), file);
    }
  });

  it('is seen behind a 64-bit sound box whose end is not there yet', () => {
    const long = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from('mdat'), Buffer.alloc(8)]);
    long.writeBigUInt64BE(5_000_000_000n, 8);
    assert.ok(soundComesBeforeIndex(Buffer.concat([start, long])));
  });

  it('is left alone or moved, never worse, in any damaged file', () => {
    const file = Buffer.concat([start, sound, index([pieceAt, 0xffff_ffff, 0]), index([1], 'co64')]);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(file.length - 1), fc.oneof(fc.constantFrom(0, 1, 255), fc.nat(255))), {
          maxLength: 5,
        }),
        fc.nat(file.length),
        (changes, length) => {
          const damaged = Buffer.from(file.subarray(0, length));
          for (const [at, value] of changes) damaged[at] = value;
          assert.equal(moveIndexToFront(damaged).length, damaged.length);
          soundComesBeforeIndex(damaged);
        },
      ),
      { seed: 8, numRuns: 5000 },
    );
  });
});
