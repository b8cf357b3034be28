import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AudioError, type Clip, type ClipOptions, readClip } from '../src/index.ts';
import { inPieces, sine } from './support/sounds.ts';
import { writeWav } from './support/wav.ts';

const limits: ClipOptions = { minSeconds: 4, maxSeconds: 10, toleranceSeconds: 0.05, ffmpegPath: null };

const clipOf = (seconds: number, sampleRate = 44_100): Promise<Clip> =>
  readClip(inPieces(writeWav(sine(seconds, sampleRate, 300), { sampleRate }), 65_536), limits);

function refused(code: string, figures: Record<string, number>) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AudioError);
    assert.deepEqual({ code: error.code, figures: error.figures }, { code, figures });
    return true;
  };
}

describe('a short recording', () => {
  it('comes whole, at 16 kHz, with its length and the rate it had', async () => {
    const clip = await clipOf(5);
    assert.equal(clip.samples.length, 80_000);
    assert.deepEqual([clip.seconds, clip.sampleRate], [5, 44_100]);
  });

  it('may be 50 ms beyond either limit and no more', async () => {
    for (const rate of [8000, 44_100, 96_000]) {
      await clipOf(3.951, rate);
      await clipOf(10.049, rate);
      await assert.rejects(clipOf(3.949, rate), { code: 'audio_too_short' });
      await assert.rejects(clipOf(10.051, rate), { code: 'audio_too_long' });
    }
  });

  it('is refused with what was wanted and what came', async () => {
    const wanted = { min_seconds: 4, max_seconds: 10 };
    await assert.rejects(clipOf(2), refused('audio_too_short', { ...wanted, actual_seconds: 2 }));
    await assert.rejects(clipOf(12.5), refused('audio_too_long', { ...wanted, actual_seconds: 12.5 }));
    await assert.rejects(clipOf(0), refused('audio_too_short', { ...wanted, actual_seconds: 0 }));
  });

  it('is not judged by a header that claims too much', async () => {
    const wav = writeWav(sine(5, 44_100, 300), { dataSize: 0x7fff_0000 });
    assert.equal((await readClip(inPieces(wav, 65_536), limits)).seconds, 5);
  });

  it('is let go as soon as it is too long, without reading the rest of an endless stream', async () => {
    let sent = 0;
    let closed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        yield writeWav(new Float32Array(0), { dataSize: 0xffff_ffff });
        for (;;) {
          sent += 65_536;
          yield Buffer.alloc(65_536, 1);
        }
      } finally {
        closed = true;
      }
    }
    await assert.rejects(
      readClip(endless(), limits),
      refused('audio_too_long', { min_seconds: 4, max_seconds: 10 }),
    );
    assert.ok(sent < 10.05 * 44_100 * 2 + 2 * 65_536);
    assert.ok(closed);
  });

  it('passes on what broke its source, and closes it when itself it is at fault', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield writeWav(sine(5, 44_100, 300)).subarray(0, 9000);
      throw new Error('connection reset');
    }
    await assert.rejects(readClip(broken(), limits), { message: 'connection reset' });

    let closed = false;
    async function* watched(): AsyncGenerator<Uint8Array> {
      try {
        yield writeWav(sine(5, 6000, 300), { sampleRate: 6000 });
        yield Buffer.alloc(9);
      } finally {
        closed = true;
      }
    }
    await assert.rejects(readClip(watched(), limits), { code: 'sample_rate_too_low' });
    assert.ok(closed);
  });

  it('stops at once when it is aborted, even where its source hangs', async () => {
    async function* hanging(): AsyncGenerator<Uint8Array> {
      yield writeWav(sine(5, 44_100, 300)).subarray(0, 9000);
      await new Promise(() => undefined);
    }
    const abort = new AbortController();
    const reading = readClip(hanging(), { ...limits, signal: abort.signal });
    setTimeout(() => abort.abort(new Error('gone')), 20);
    await assert.rejects(reading, { message: 'gone' });
    await assert.rejects(readClip(inPieces(Buffer.from('RIFF')), { ...limits, signal: abort.signal }), {
      message: 'gone',
    });
  });
});
