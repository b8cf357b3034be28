import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writeWav } from '@undertone/testing/wav';
import { AudioError, decodeBlock, memorySource, readClip } from '../src/index.ts';
import { inPieces, open, sine } from './support/sounds.ts';

const clipOf = async (seconds: number, sampleRate = 44_100) =>
  readClip(await open(memorySource(writeWav(sine(seconds, sampleRate, 300), { sampleRate }))));

function refused(code: string, message: string, figures: Record<string, number>) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AudioError);
    assert.deepEqual([error.code, error.message, error.figures], [code, message, figures]);
    return true;
  };
}

describe('a short recording', () => {
  it('comes whole, as one block, with its length', async () => {
    const { block, seconds } = await clipOf(5);
    assert.equal(seconds, 5);
    assert.equal(decodeBlock(block)[0]?.length, 80_000);
  });

  it('may be 50 ms beyond either limit and no more; the model gets 10 s at most', async () => {
    for (const rate of [8000, 44_100, 96_000]) {
      assert.equal((await clipOf(3.951, rate)).seconds, 3.951);
      const { block, seconds } = await clipOf(10.049, rate);
      assert.equal(seconds, 10.049);
      assert.equal(decodeBlock(block)[0]?.length, 160_000);
      await assert.rejects(clipOf(3.949, rate), { code: 'audio_too_short' });
      await assert.rejects(clipOf(10.051, rate), { code: 'audio_too_long' });
    }
  });

  it('is refused with both limits, what came, and where else to go', async () => {
    const limits = { min_seconds: 4, max_seconds: 10 };
    await assert.rejects(
      clipOf(3.2),
      refused(
        'audio_too_short',
        'The recording is 3.2 s long; 4 to 10 s are accepted here. Join it with the sentences around it, or send 5 s and more to the asynch interface (POST /v1/asynch/requests).',
        { ...limits, actual_seconds: 3.2 },
      ),
    );
    await assert.rejects(
      clipOf(12.5),
      refused(
        'audio_too_long',
        'The recording is 12.5 s long; 4 to 10 s are accepted here. Longer recordings go to the asynch interface (POST /v1/asynch/requests).',
        { ...limits, actual_seconds: 12.5 },
      ),
    );
    await assert.rejects(clipOf(0), { code: 'audio_too_short' });
  });

  it('is not judged by a header that claims too much', async () => {
    const wav = writeWav(sine(5, 44_100, 300), { dataSize: 0x7fff_0000 });
    assert.equal((await readClip(await open(memorySource(wav)))).seconds, 5);
  });

  it('is let go as soon as it is too long, without reading the rest of an endless stream', async () => {
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
      readClip(await open(endless)),
      refused(
        'audio_too_long',
        'The recording is longer than 10 s; 4 to 10 s are accepted here. Longer recordings go to the asynch interface (POST /v1/asynch/requests).',
        { min_seconds: 4, max_seconds: 10 },
      ),
    );
    assert.ok(sent < 10.1 * 44_100 * 2 + 2 * 65_536);
    assert.ok(closed);
  });

  it('passes on what broke its source, and closes it when the recording itself is at fault', async () => {
    const broken = {
      size: 9001,
      async *read() {
        yield writeWav(sine(5, 44_100, 300)).subarray(0, 9000);
        throw new Error('connection reset');
      },
    };
    await assert.rejects(readClip(await open(broken)), { message: 'connection reset' });

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
