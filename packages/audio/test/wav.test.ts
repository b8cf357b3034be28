import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { Random } from '@undertone/testing/random';
import { chunk, encodings, writeWav } from '@undertone/testing/wav';
import fc from 'fast-check';
import { AudioError, type Sound } from '../src/index.ts';
import { decodeAll, inPieces, open as openSource, signalToNoise, sine, voice } from './support/sounds.ts';

const open = (wav: Uint8Array): Promise<Sound> => openSource(inPieces(wav, 4096));
const read = async (wav: Uint8Array): Promise<Float32Array> => decodeAll(await open(wav));

/** At 16 kHz nothing is resampled, so samples stay unchanged. */
const tone = sine(0.25, 16_000, 440);
const at16k = { sampleRate: 16_000 };

/** Signal-to-noise ratio of each encoding, in dB for a half-scale tone. */
const fidelity = {
  pcm8: 40,
  pcm16: 85,
  pcm24: 130,
  pcm32: 140,
  float32: 140,
  float64: 140,
  alaw: 35,
  mulaw: 35,
};

function rejectsWith(code: string, message: RegExp, figures: Record<string, number> = {}) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AudioError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.deepEqual(error.figures, figures);
    return true;
  };
}

describe('a WAV file', () => {
  it('is not affected by others that are read concurrently', async () => {
    const files = encodings.flatMap((encoding, nth) =>
      [16_000, 44_100].map((sampleRate) =>
        writeWav(sine(0.5, sampleRate, 200 + 100 * nth), { sampleRate, encoding }),
      ),
    );
    const alone: Float32Array[] = [];
    for (const file of files) alone.push(await read(file));
    assert.deepEqual(await Promise.all(files.map(read)), alone);
  });

  for (const encoding of encodings) {
    it(`is read as written: ${encoding}, any container, channels and pieces`, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('RIFF' as const, 'RF64' as const, 'BW64' as const),
          fc.boolean(),
          fc.integer({ min: 1, max: 9 }),
          fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 6 }),
          fc.array(
            fc.tuple(fc.constantFrom('LIST', 'bext', 'JUNK', 'PAD '), fc.uint8Array({ maxLength: 99 })),
          ),
          async (container, extensible, channels, pieces, odd) => {
            const options = { ...at16k, encoding, container, extensible, channels, before: odd, after: odd };
            const wav = writeWav(tone, options);
            const sound = await openSource(inPieces(wav, ...pieces));
            const { sampleRate, frameBytes, ...format } = sound.format;
            assert.deepEqual(format, { encoding, channels });
            const samples = await decodeAll(sound);
            assert.equal(samples.length, tone.length);
            assert.ok(signalToNoise(tone, samples) > fidelity[encoding]);
          },
        ),
        { seed: 3, numRuns: 12 },
      );
    });
  }

  it('is exact at full scale in integer encodings', async () => {
    const edges = [-1, -0.5, 0, 0.5, 1 - 2 ** -7];
    for (const encoding of ['pcm8', 'pcm16', 'pcm24', 'pcm32'] as const) {
      assert.deepEqual([...(await read(writeWav(edges, { ...at16k, encoding })))], edges);
    }
  });

  it('expands all A-law and mu-law codes exactly as ffmpeg does', async () => {
    const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
    for (const encoding of ['alaw', 'mulaw'] as const) {
      const wav = writeWav(new Float32Array(256), { ...at16k, encoding });
      codes.forEach((code) => {
        wav[wav.length - 256 + code] = code;
      });
      const theirs = execFileSync('ffmpeg', ['-loglevel', 'error', '-i', 'pipe:0', '-f', 's16le', 'pipe:1'], {
        input: wav,
      });
      const expected = new Int16Array(new Uint8Array(theirs).buffer);
      assert.deepEqual(
        [...(await read(wav))].map((value) => value + 0), // turns -0 into 0
        [...expected].map((value) => value / 32_768),
      );
    }
  });

  it('is mixed down to the mean of its channels', async () => {
    const wav = writeWav([0.5, -0.25, 1, 0.5], { ...at16k, encoding: 'float32' });
    wav.writeUInt16LE(2, 22);
    wav.writeUInt16LE(8, 32);
    assert.deepEqual([...(await read(wav))], [0.125, 0.75]);
  });

  it('may have 20 bits in 24 and 24 bits in 32', async () => {
    const twenty = writeWav(tone, { ...at16k, encoding: 'pcm24' });
    twenty.writeUInt16LE(20, 34);
    const padded = writeWav(tone, { ...at16k, encoding: 'pcm32' });
    padded.writeUInt16LE(24, 34);
    assert.ok(signalToNoise(tone, await read(twenty)) > 130);
    assert.ok(signalToNoise(tone, await read(padded)) > 130);
  });

  for (const [what, dataSize] of [
    ['zero', 0],
    ['0xFFFFFFFF', 0xffff_ffff],
    ['larger than the file', 0x7fff_fff0],
    ['outdated', 2000],
  ] as const) {
    it(`is read to its end if its data size is ${what}`, async () => {
      const noise = new Random(11);
      const loud = Float32Array.from({ length: 4000 }, () => (noise.next() > 0.5 ? 0.9 : -0.9));
      const samples = await read(writeWav(loud, { ...at16k, dataSize }));
      assert.equal(samples.length, loud.length);
      assert.ok(signalToNoise(loud, samples) > 80);
    });
  }

  it('does not read tags and padding after the stated end as sound', async () => {
    const wav = writeWav(tone, at16k);
    for (const tail of [
      Buffer.from('ID3\x04\x00 a tag'),
      Buffer.alloc(512),
      chunk('LIST', Buffer.alloc(33)),
      Buffer.from('xy'),
    ]) {
      assert.equal((await read(Buffer.concat([wav, tail]))).length, tone.length);
    }
  });

  it('is read to its end if its data size is outdated, whatever samples come next', async () => {
    const readable = Buffer.from('abc you can read this as text, and it could be the name of a chunk');
    const samples = fc.oneof(
      fc.integer({ min: 8, max: 3_000 }).map((bytes) => Buffer.alloc(bytes)),
      fc.integer({ min: 0, max: 40 }).map((at) => readable.subarray(at)),
      fc.uint8Array({ minLength: 8, maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    );
    const whole = writeWav(tone, at16k);
    const loud = whole.subarray(44 + 100, 44 + 100 + 4_000);
    await fc.assert(
      fc.asyncProperty(samples, fc.integer({ min: 1, max: 3_000 }), async (next, stated) => {
        const even = next.subarray(0, next.length & ~1);
        const data = Buffer.concat([loud.subarray(0, stated & ~1), even, loud]);
        const wav = Buffer.concat([whole.subarray(0, 44), data]);
        wav.writeUInt32LE(Math.max(2, stated & ~1), 40);
        assert.equal((await read(wav)).length, data.length / 2);
      }),
    );
  });

  it('does not read a chunk with any name after the stated end as sound', async () => {
    const name = fc.stringMatching(/^[ -~]{4}$/);
    const body = fc.uint8Array({ maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(name, body, fc.boolean(), async (id, bytes, another) => {
        const tail = [chunk(id, bytes), ...(another ? [chunk('note', Buffer.from('more'))] : [])];
        const wav = Buffer.concat([writeWav(tone, at16k), ...tail]);
        assert.equal((await read(wav)).length, tone.length);
      }),
    );
  });

  it('may lack the padding of odd chunks', async () => {
    const wav = writeWav(tone, { ...at16k, before: [['note', Buffer.from('abc')]] });
    const unpadded = Buffer.concat([wav.subarray(0, 47), wav.subarray(48)]);
    assert.equal((await read(unpadded)).length, tone.length);
  });

  it('is read up to the last whole frame if it is truncated', async () => {
    const wav = writeWav(tone, { ...at16k, channels: 2 });
    const samples = await read(wav.subarray(0, wav.length - 4001));
    assert.equal(samples.length, tone.length - 1001);
  });

  it('is clipped if floating-point peaks exceed full scale', async () => {
    const wav = writeWav([0.5, 1.25, -3, -0.5], { ...at16k, encoding: 'float32' });
    assert.deepEqual([...(await read(wav))], [0.5, 1, -1, -0.5]);
  });

  it('is refused if floating-point samples are not numbers or not scaled to 1', async () => {
    for (const [value, words] of [
      [Number.NaN, /not numbers/],
      [Number.POSITIVE_INFINITY, /not numbers/],
      [Number.NEGATIVE_INFINITY, /not numbers/],
      [32_000, /full scale/],
    ] as const) {
      for (const encoding of ['float32', 'float64'] as const) {
        const samples = Float32Array.from(tone);
        samples[3000] = value;
        await assert.rejects(
          read(writeWav(samples, { ...at16k, encoding })),
          rejectsWith('unreadable_audio', words),
        );
      }
    }
  });

  it('is refused below 8 kHz and above 192 kHz, with the figures', async () => {
    await assert.rejects(
      open(writeWav(tone, { sampleRate: 7999 })),
      rejectsWith('sample_rate_too_low', /7999 Hz/, { min_sample_rate: 8000, actual_sample_rate: 7999 }),
    );
    await assert.rejects(
      open(writeWav(tone, { sampleRate: 192_001 })),
      rejectsWith('sample_rate_too_high', /192001 Hz/, {
        max_sample_rate: 192_000,
        actual_sample_rate: 192_001,
      }),
    );
    for (const sampleRate of [8000, 192_000]) await open(writeWav(tone, { sampleRate }));
  });

  it('is refused with the reason if it is invalid', async () => {
    const wav = writeWav(tone, at16k);
    const changed = (at: number, value: number): Buffer => {
      const copy = Buffer.from(wav);
      copy.writeUInt16LE(value, at);
      return copy;
    };
    const faults: Array<[Uint8Array, RegExp]> = [
      [Buffer.alloc(0), /empty/],
      [wav.subarray(0, 12), /before its fmt chunk/],
      [wav.subarray(0, 30), /fmt chunk is cut short/],
      [wav.subarray(0, 40), /no data chunk/],
      [changed(22, 0), /0 channels/],
      [changed(22, 65), /65 channels/],
      [changed(34, 0), /0 bits/],
      [changed(34, 64), /64 bits/],
      [Buffer.concat([wav.subarray(0, 12), wav.subarray(36), wav.subarray(12, 36)]), /before its fmt/],
    ];
    for (const [bytes, message] of faults) {
      await assert.rejects(open(bytes), rejectsWith('unreadable_audio', message));
    }
  });
});

describe('the same recording', () => {
  const reference = voice(1, 16_000);
  for (const sampleRate of [8000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000, 192_000]) {
    it(`gives nearly the same samples from ${sampleRate} Hz in any depth, mono or stereo`, async () => {
      for (const [encoding, atLeast] of [
        ['pcm16', 80],
        ['pcm24', 105],
        ['pcm32', 105],
        ['float32', 105],
      ] as const) {
        for (const channels of [1, 2]) {
          const samples = await read(writeWav(voice(1, sampleRate), { sampleRate, encoding, channels }));
          assert.equal(samples.length, reference.length);
          const match = signalToNoise(reference, samples, 800, 15_200);
          assert.ok(match > atLeast, `${encoding}, ${channels} channels: ${match.toFixed(1)} dB`);
        }
      }
    });
  }
});
