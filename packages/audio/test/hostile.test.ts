import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chunk, encodings, writeWav } from '@undertone/testing/wav';
import fc from 'fast-check';
import { AudioError } from '../src/index.ts';
import { decodeAll, inPieces, open, sine } from './support/sounds.ts';

const tone = sine(0.05, 16_000, 440);

/** Either sound or an AudioError: anything else is a fault of ours. */
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

const seldom = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });

const mutation = fc.record({
  encoding: fc.constantFrom(...encodings),
  container: fc.constantFrom('RIFF' as const, 'RF64' as const),
  extensible: fc.boolean(),
  channels: fc.integer({ min: 1, max: 4 }),
  /** Bytes and 32-bit numbers written over the header, most of them extremes. */
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
  length: seldom(fc.nat(1700)),
  doubled: seldom(fc.tuple(fc.nat(60), fc.nat(60))),
  pieces: fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 4 }),
});

describe('damaged and hostile recordings', () => {
  it('are read or refused, quickly and in little memory, in 4000 mutations', async () => {
    const seen = { read: 0, refused: 0 };
    let held = 0;
    await fc.assert(
      fc.asyncProperty(mutation, async ({ bytes, words, length, doubled, pieces, ...options }) => {
        let wav = writeWav(tone, { ...options, sampleRate: 16_000 });
        for (const [at, value] of bytes) wav[at] = value;
        for (const [at, value] of words) wav.writeUInt32LE(value, at * 4);
        if (doubled !== null) wav = Buffer.concat([wav.subarray(0, doubled[0]), wav.subarray(doubled[1])]);
        if (length !== null) wav = wav.subarray(0, length);
        const before = process.memoryUsage().arrayBuffers;
        seen[await readOrRefuse(wav, pieces)]++;
        held = Math.max(held, process.memoryUsage().arrayBuffers - before);
      }),
      { seed: 5, numRuns: 4000 },
    );
    assert.ok(seen.read > 500 && seen.refused > 500, `a mix of both: ${JSON.stringify(seen)}`);
    assert.ok(held < 30e6, `one of them took ${Math.round(held / 1e6)} MB`);
  });

  it('are read or refused when they are no more than random bytes behind a WAV name', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 1, max: 50 }),
        async (bytes, piece) => {
          await readOrRefuse(Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), bytes]), [piece]);
        },
      ),
      { seed: 6, numRuns: 2000 },
    );
  });

  for (const [what, claim] of [
    ['fmt chunk', 16],
    ['chunk before the sound', 40],
  ] as const) {
    it(`take no memory for a ${what} that claims four gigabytes`, async () => {
      const wav = writeWav(tone, { before: [['JUNK', Buffer.alloc(8)]] });
      wav.writeUInt32LE(0xffff_fff0, claim);
      const before = process.memoryUsage().arrayBuffers;
      assert.equal(await readOrRefuse(wav, [64]), 'refused');
      assert.ok(process.memoryUsage().arrayBuffers - before < 5e6);
    });
  }

  it('end when their chunks never do', async () => {
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
