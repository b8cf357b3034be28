import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Random } from '@undertone/testing/random';
import { encodings, writeWav } from '@undertone/testing/wav';
import fc from 'fast-check';
import { cutIntoBlocks, decodeBlock, modelSamples, type PcmBlock } from '../src/index.ts';
import { collect, concatenate, decodeAll, inPieces, open } from './support/sounds.ts';

const rates = fc.oneof(
  fc.constantFrom(8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000),
  fc.constantFrom(8001, 12_345, 15_999, 44_101, 191_999),
  fc.integer({ min: 8000, max: 192_000 }),
);

const HEADER_BYTES = 44;
const random = new Random(3);
const loud = Float32Array.from({ length: 60_000 }, () => random.next() * 2 - 1);

async function blocksOf(wav: Uint8Array, mostBytes?: number): Promise<PcmBlock[]> {
  const { pieces, format } = await open(inPieces(wav, 10_007));
  return collect(cutIntoBlocks(pieces, format, mostBytes));
}

/** Interleaves the samples of several files. */
const interleave = (files: readonly Uint8Array[]) => (sampleBytes: number) =>
  Buffer.concat(
    Array.from({ length: (files[0]?.length ?? 0) / sampleBytes }, (_, i) =>
      files.map((file) => file.subarray(i * sampleBytes, (i + 1) * sampleBytes)),
    ).flat(),
  );

describe('block-wise decoding', () => {
  it('gives bit for bit the same as decoding in one piece', async () => {
    let most = 0;
    await fc.assert(
      fc.asyncProperty(
        rates,
        fc.constantFrom(...encodings),
        fc.constantFrom(1, 1, 1, 2, 3, 8),
        fc.oneof(fc.nat(40), fc.nat(loud.length)),
        fc.integer({ min: 1, max: 60_000 }),
        fc.nat(7),
        async (sampleRate, encoding, channels, frames, mostBytes, cut) => {
          const whole = writeWav(loud.subarray(0, frames), { sampleRate, encoding, channels });
          // The last frame may be incomplete.
          const wav = whole.subarray(0, Math.max(HEADER_BYTES, whole.length - cut));
          const blocks = await blocksOf(wav, mostBytes);
          most = Math.max(most, blocks.length);
          // Independently, in reverse order: no state is kept between blocks.
          const decoded = blocks.toReversed().flatMap((block) => decodeBlock(structuredClone(block)));
          const { format } = await open(inPieces(wav));
          const data = wav.subarray(HEADER_BYTES, HEADER_BYTES + frames * format.frameBytes);
          const end = modelSamples(Math.floor(data.length / format.frameBytes), sampleRate);
          const [expected] = decodeBlock({ format, data, firstFrame: 0, outputs: { start: 0, end } });
          const actual = concatenate(decoded.toReversed());
          assert.equal(actual.length, end);
          assert.ok(actual.every((value, i) => value === expected?.[i]));
        },
      ),
      { seed: 21, numRuns: 100 },
    );
    assert.ok(most > 20, `at most ${most} blocks`);
  });

  it('of separate channels gives bit for bit the same as one file per channel', async () => {
    for (const [sampleRate, encoding, channels] of [
      [44_100, 'pcm16', 2],
      [8_000, 'mulaw', 3],
      [48_000, 'float32', 8],
    ] as const) {
      const frames = 20_000;
      const options = { sampleRate, encoding };
      const alone = (channel: number) => loud.subarray(channel * 2_000, channel * 2_000 + frames);
      const files = Array.from({ length: channels }, (_, i) => writeWav(alone(i), options));
      const together = interleave(files.map((file) => file.subarray(HEADER_BYTES)));
      const [block] = await blocksOf(files[0] as Buffer);
      const { format, ...rest } = block as PcmBlock;
      const sampleBytes = format.frameBytes;
      const wide = { ...format, channels, frameBytes: sampleBytes * channels };
      const decoded = decodeBlock({ ...rest, format: wide, data: together(sampleBytes), channel: 'each' });
      assert.equal(decoded.length, channels);
      for (const [i, file] of files.entries()) {
        const [expected] = decodeBlock({ ...rest, format, data: file.subarray(HEADER_BYTES) });
        assert.deepEqual(decoded[i], expected);
      }
    }
  });

  it('has a bounded block size for any rate and number of channels', async () => {
    for (const [sampleRate, channels, encoding] of [
      [191_999, 64, 'float64'],
      [192_000, 2, 'float32'],
      [44_100, 1, 'pcm16'],
      [8000, 1, 'pcm8'],
    ] as const) {
      const frames = Math.min(30 * sampleRate, 20_000_000 / channels / 8);
      const blocks = await blocksOf(writeWav(new Float32Array(frames), { sampleRate, channels, encoding }));
      assert.ok(blocks.length > 1);
      for (const { data, outputs } of blocks) {
        assert.ok(data.length < 6 * 1024 * 1024, `${data.length} bytes`);
        assert.ok(outputs.end - outputs.start <= 20 * 16_000 + 100, `${outputs.end - outputs.start} samples`);
      }
    }
  });

  it('keeps only the current block of two hours of sound in memory', async () => {
    const header = writeWav([], { sampleRate: 16_000, dataSize: 0xffff_ffff });
    const source = {
      size: 2 * 3600 * 32_000,
      async *read() {
        yield header;
        for (let second = 0; second < 2 * 3600; second++) yield Buffer.alloc(32_000, second);
      },
    };
    const { pieces, format } = await open(source);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    let seconds = 0;
    for await (const { outputs } of cutIntoBlocks(pieces, format)) {
      seconds += (outputs.end - outputs.start) / 16_000;
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }
    assert.equal(seconds, 2 * 3600);
    assert.ok(most - before < 150e6, `${Math.round((most - before) / 1e6)} MB of 230 MB in memory at once`);
  });

  it('reads at most one block ahead', async () => {
    const wav = writeWav(loud, { sampleRate: 16_000 });
    let read = 0;
    const source = inPieces(wav, 1000);
    const { pieces, format } = await open({
      size: source.size,
      async *read() {
        for await (const piece of source.read()) {
          read += piece.length;
          yield piece;
        }
      },
    });
    let used = 0;
    for await (const { data } of cutIntoBlocks(pieces, format, 8000)) {
      used += data.length;
      assert.ok(read <= used + 2000, `${read} bytes read, ${used} used`);
    }
    assert.equal(used, loud.length * 2);
  });

  it('does not depend on how the bytes arrive', async () => {
    const wav = writeWav(loud, { sampleRate: 44_100, channels: 2, encoding: 'pcm24' });
    const whole = await decodeAll(await open(inPieces(wav)));
    for (const sizes of [[1, 2, 3, 65_536], [4096], [9999, 7]]) {
      assert.deepEqual(await decodeAll(await open(inPieces(wav, ...sizes)), 50_000), whole);
    }
  });
});
