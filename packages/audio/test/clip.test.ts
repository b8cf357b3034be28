import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writeWav } from '@undertone/testing/wav';
import { AudioError, collectClip, decodeBlock, type RecordingSource, readClip } from '../src/index.ts';
import { inPieces, open, sine } from './support/sounds.ts';

const clipOf = (seconds: number, sampleRate = 44_100) =>
  readClip(writeWav(sine(seconds, sampleRate, 300), { sampleRate }));

async function collect(source: RecordingSource): Promise<Uint8Array> {
  const { pieces, format } = await open(source);
  return collectClip(pieces, format);
}

function refused(code: string, message: string, figures: Record<string, number>) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AudioError);
    assert.deepEqual([error.code, error.message, error.figures], [code, message, figures]);
    return true;
  };
}

describe('a short recording', () => {
  it('is read as one block, with its length', () => {
    const { block, seconds } = clipOf(5);
    assert.equal(seconds, 5);
    assert.equal(decodeBlock(block)[0]?.length, 80_000);
  });

  it('is a view of the file, not a copy', () => {
    const wav = writeWav(sine(5, 44_100, 300));
    const { data } = readClip(wav).block;
    assert.equal(data.buffer, wav.buffer);
    assert.equal(data.length, 5 * 44_100 * 2);
  });

  it('is read from raw samples in a known format', () => {
    const wav = writeWav(sine(5, 44_100, 300), { channels: 2, encoding: 'float32' });
    const { block, seconds } = readClip(wav);
    assert.deepEqual(readClip(Buffer.from(block.data), block.format), {
      block: { ...block, data: Buffer.from(block.data) },
      seconds,
    });
  });

  it('has a length tolerance of 50 ms; the model gets 10 s at most', () => {
    for (const rate of [8000, 44_100, 96_000]) {
      assert.equal(clipOf(3.951, rate).seconds, 3.951);
      const { block, seconds } = clipOf(10.049, rate);
      assert.equal(seconds, 10.049);
      assert.equal(decodeBlock(block)[0]?.length, 160_000);
      assert.throws(() => clipOf(3.949, rate), { code: 'audio_too_short' });
      assert.throws(() => clipOf(10.051, rate), { code: 'audio_too_long' });
    }
  });

  it('outside the limits is refused with the limits, its length and the alternative', () => {
    const limits = { min_seconds: 4, max_seconds: 10 };
    assert.throws(
      () => clipOf(3.2),
      refused(
        'audio_too_short',
        'The recording is 3.2 s long; 4 to 10 s are accepted here. Join it with the sentences around it, or send 5 s and more to the asynch interface (POST /v1/asynch/requests).',
        { ...limits, actual_seconds: 3.2 },
      ),
    );
    assert.throws(
      () => clipOf(12.5),
      refused(
        'audio_too_long',
        'The recording is 12.5 s long; 4 to 10 s are accepted here. Longer recordings go to the asynch interface (POST /v1/asynch/requests).',
        { ...limits, actual_seconds: 12.5 },
      ),
    );
    assert.throws(() => clipOf(0), { code: 'audio_too_short' });
  });

  it('is measured by its samples when the header states too many', () => {
    const wav = writeWav(sine(5, 44_100, 300), { dataSize: 0x7fff_0000 });
    assert.equal(readClip(wav).seconds, 5);
  });

  it('is refused for its sample rate before its length', () => {
    assert.throws(
      () => clipOf(1, 6000),
      refused(
        'sample_rate_too_low',
        'The sample rate is 6000 Hz; at least 8000 Hz are needed. Record at a higher rate.',
        {
          min_sample_rate: 8000,
          actual_sample_rate: 6000,
        },
      ),
    );
  });

  it('in compressed WAV is left to ffmpeg', () => {
    const wav = writeWav(sine(5, 44_100, 300));
    wav.writeUInt16LE(0x11, 20); // IMA ADPCM
    assert.throws(() => readClip(wav), {
      code: 'unsupported_media_type',
      message: /^This recording is compressed WAV/,
    });
  });

  it('from an endless stream is refused as soon as it is too long', async () => {
    let sent = 0;
    let closed = false;
    const endless = {
      size: Infinity,
      async *read() {
        try {
          yield writeWav(new Float32Array(0), { dataSize: 0xffff_ffff });
          for (;;) {
            sent += 65_536;
            yield Buffer.alloc(65_536, 1);
          }
        } finally {
          closed = true;
        }
      },
    };
    await assert.rejects(
      collect(endless),
      refused(
        'audio_too_long',
        'The recording is longer than 10 s; 4 to 10 s are accepted here. Longer recordings go to the asynch interface (POST /v1/asynch/requests).',
        { min_seconds: 4, max_seconds: 10 },
      ),
    );
    assert.ok(sent < 10.1 * 44_100 * 2 + 2 * 65_536);
    assert.ok(closed);
  });

  it('passes on an error of its source, and closes the source of an unusable recording', async () => {
    const broken = {
      size: 9001,
      async *read() {
        yield writeWav(sine(5, 44_100, 300)).subarray(0, 9000);
        throw new Error('connection reset');
      },
    };
    await assert.rejects(collect(broken), { message: 'connection reset' });

    let closed = false;
    const low = writeWav(sine(5, 6000, 300), { sampleRate: 6000 });
    const watched = {
      size: low.length,
      async *read() {
        try {
          yield* inPieces(low, 100).read();
        } finally {
          closed = true;
        }
      },
    };
    await assert.rejects(open(watched), { code: 'sample_rate_too_low' });
    assert.ok(closed);
  });
});
