import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chunk, encodings, writeWav } from '@undertone/testing/wav';
import fc from 'fast-check';
import { needsFfmpeg, unreadable } from '../src/errors.ts';
import { AudioError, isWav, type PcmFormat, sniff } from '../src/index.ts';
import { checkSampleRate, readWav } from '../src/wav.ts';
import { collect, decodeAll, inPieces, open, sine } from './support/sounds.ts';

const tone = sine(0.05, 16_000, 440);

/** Anything but sound or an AudioError is a bug. */
async function readOrRefuse(bytes: Uint8Array, pieces: number[]): Promise<'read' | 'refused'> {
  try {
    const samples = await decodeAll(await open(inPieces(bytes, ...pieces)));
    assert.ok(samples.every((value) => Math.abs(value) < 4));
    return 'read';
  } catch (error) {
    if (error instanceof AudioError) return 'refused';
    throw error;
  }
}

const rarely = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });

const mutations = fc
  .record({
    encoding: fc.constantFrom(...encodings),
    container: fc.constantFrom('RIFF' as const, 'RF64' as const),
    extensible: fc.boolean(),
    channels: fc.integer({ min: 1, max: 4 }),
    /** Bytes and 32-bit numbers that overwrite the header, mostly extreme values. */
    bytes: fc.array(fc.tuple(fc.nat(120), fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.nat(255))), {
      maxLength: 4,
    }),
    words: fc.array(
      fc.tuple(
        fc.nat(30),
        fc.constantFrom(0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 0x0100_0000),
      ),
      { maxLength: 2 },
    ),
    length: rarely(fc.nat(1700)),
    doubled: rarely(fc.tuple(fc.nat(60), fc.nat(60))),
  })
  .map(({ bytes, words, length, doubled, ...options }) => {
    let wav = writeWav(tone, { ...options, sampleRate: 16_000 });
    for (const [at, value] of bytes) wav[at] = value;
    for (const [at, value] of words) wav.writeUInt32LE(value, at * 4);
    if (doubled !== null) wav = Buffer.concat([wav.subarray(0, doubled[0]), wav.subarray(doubled[1])]);
    return length === null ? wav : wav.subarray(0, length);
  });
const pieceSizes = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 4 });

/** Format and bytes of the samples, or the reason why there are none. */
type Parsed = { format: PcmFormat; data: Uint8Array } | string;

async function readStream(wav: Uint8Array, sizes: number[]): Promise<Parsed> {
  try {
    const { format, pieces } = await open(inPieces(wav, ...sizes));
    return { format, data: Buffer.concat(await collect(pieces)) };
  } catch (error) {
    return (error as AudioError).message;
  }
}

function readMemory(wav: Uint8Array): Parsed {
  try {
    const sound = isWav(wav) ? readWav(wav) : null;
    if (sound === null)
      throw wav.length === 0 ? unreadable('The recording is empty.') : needsFfmpeg(sniff(wav));
    checkSampleRate(sound.format);
    return { format: sound.format, data: Buffer.from(sound.data) };
  } catch (error) {
    return (error as AudioError).message;
  }
}

describe('damaged and hostile recordings', () => {
  it('are read or refused, in bounded memory, in 1500 mutations', async () => {
    const seen = { read: 0, refused: 0 };
    let held = 0;
    await fc.assert(
      fc.asyncProperty(mutations, pieceSizes, async (wav, pieces) => {
        const before = process.memoryUsage().arrayBuffers;
        seen[await readOrRefuse(wav, pieces)]++;
        held = Math.max(held, process.memoryUsage().arrayBuffers - before);
      }),
      { seed: 5, numRuns: 1500 },
    );
    assert.ok(seen.read > 200 && seen.refused > 200, `not enough of both: ${JSON.stringify(seen)}`);
    assert.ok(held < 30e6, `one of them took ${Math.round(held / 1e6)} MB`);
  });

  it('are the same from memory as from a stream, in 1500 mutations', async () => {
    await fc.assert(
      fc.asyncProperty(mutations, pieceSizes, async (wav, sizes) => {
        assert.deepEqual(readMemory(wav), await readStream(wav, sizes));
      }),
      { seed: 9, numRuns: 1500 },
    );
  });

  it('are read or refused when random bytes follow a RIFF header', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 1, max: 50 }),
        async (bytes, piece) => {
          await readOrRefuse(Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), bytes]), [piece]);
        },
      ),
      { seed: 6, numRuns: 1000 },
    );
  });

  for (const [what, claim] of [
    ['fmt chunk', 16],
    ['chunk before the sound', 40],
  ] as const) {
    it(`take no memory for a ${what} with a stated size of 4 GB`, async () => {
      const wav = writeWav(tone, { before: [['JUNK', Buffer.alloc(8)]] });
      wav.writeUInt32LE(0xffff_fff0, claim);
      const before = process.memoryUsage().arrayBuffers;
      assert.equal(await readOrRefuse(wav, [64]), 'refused');
      assert.ok(process.memoryUsage().arrayBuffers - before < 5e6);
    });
  }

  it('with endless chunks are refused', async () => {
    const endless = {
      size: Infinity,
      async *read() {
        yield Buffer.from('RIFF\0\0\0\0WAVE');
        for (;;) yield chunk('JUNK', Buffer.alloc(0));
      },
    };
    await assert.rejects(open(endless), { code: 'unreadable_audio', message: /chunks/ });
  });
});
