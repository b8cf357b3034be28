import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { transcodeToWav } from '../src/foreign/ffmpeg.ts';
import { AudioError, type Clip, type ClipOptions, findFfmpeg, openAudio, readClip } from '../src/index.ts';
import { collect, inPieces, signalToNoise, voice } from './support/sounds.ts';
import { writeWav } from './support/wav.ts';

const limits: ClipOptions = { minSeconds: 4, maxSeconds: 10, toleranceSeconds: 0.05 };
const sound = writeWav(voice(5, 44_100));
const quiet = ['-y', '-loglevel', 'error'];

let folder: string;
const inFolder = (name: string): string => join(folder, name);

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'undertone-foreign-'));
  await writeFile(inFolder('voice.wav'), sound);
});
after(() => rm(folder, { recursive: true }));

/** The voice in another format, made by ffmpeg. */
async function converted(name: string, ...options: string[]): Promise<Buffer> {
  execFileSync('ffmpeg', [...quiet, '-i', inFolder('voice.wav'), ...options, inFolder(name)]);
  return readFile(inFolder(name));
}

/** A program to run in ffmpeg's place, which notes its process id first. */
async function program(
  name: string,
  script: string,
): Promise<{ path: string; isRunning: () => Promise<boolean> }> {
  const path = inFolder(name);
  await writeFile(path, `#!/bin/sh\necho $$ > ${path}.pid\n${script}\n`);
  await chmod(path, 0o755);
  const isRunning = async (): Promise<boolean> => {
    try {
      return process.kill(Number(await readFile(`${path}.pid`, 'utf8')), 0);
    } catch {
      return false;
    }
  };
  return { path, isRunning };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    assert.ok(tries < 500, 'waited too long');
    await setTimeout(10);
  }
}

const clip = (bytes: Uint8Array, options: Partial<ClipOptions> = {}): Promise<Clip> =>
  readClip(inPieces(bytes, 3000), { ...limits, ...options });

describe('recordings in other formats', () => {
  for (const [name, format, atLeast, ...options] of [
    ['voice.flac', 'flac', 80],
    ['voice.aiff', 'aiff', 80],
    ['voice.caf', 'caf', 80],
    ['voice.w64', 'w64', 80],
    ['voice-adpcm.wav', 'wav', 20, '-c:a', 'adpcm_ima_wav'],
    ['voice.ogg', 'ogg', 10, '-c:a', 'libvorbis'],
    ['voice.webm', 'webm', 10, '-c:a', 'libopus', '-b:a', '96k'],
    ['voice.mp3', 'mp3', 10, '-b:a', '128k'],
    ['voice.m4a', 'mp4', 10, '-b:a', '128k'],
    ['voice-fast.m4a', 'mp4', 10, '-b:a', '128k', '-movflags', '+faststart'],
    ['voice.mkv', 'webm', 80, '-c:a', 'flac'],
  ] as const) {
    it(`are read: ${name} ${options.join(' ')}`, async () => {
      const bytes = await converted(name, ...options);
      const audio = await openAudio(inPieces(bytes, 5000));
      assert.equal(audio.format, format);
      const samples = await collect(audio.chunks);
      const match = bestMatch(samples);
      assert.ok(match > atLeast, `${match.toFixed(1)} dB`);
    });
  }

  it('are recognised by their bytes alone, whatever comes first in the stream', async () => {
    const bytes = await converted('voice.flac');
    const audio = await openAudio(inPieces(bytes, 1, 2, 70_000));
    assert.deepEqual([audio.format, audio.sampleRate, audio.channels], ['flac', 44_100, 1]);
    audio.close();
  });

  it('keep the checks of every recording: rate and length', async () => {
    const low = await converted('low.flac', '-ar', '6000');
    await assert.rejects(clip(low), {
      code: 'sample_rate_too_low',
      figures: { min_sample_rate: 8000, actual_sample_rate: 6000 },
    });
    const short = await converted('short.flac', '-t', '3');
    await assert.rejects(clip(short), { code: 'audio_too_short' });
  });

  it('are read from a file where there is one, so that ffmpeg can seek', async () => {
    await converted('seek.m4a');
    const filePath = inFolder('seek.m4a');
    const result = await readClip(inPieces(await readFile(filePath)), { ...limits, filePath });
    assert.ok(bestMatch(result.samples) > 10);
  });

  it('are used up to where they are damaged', async () => {
    const bytes = await converted('cut.flac');
    const result = await clip(bytes.subarray(0, bytes.length * 0.9));
    assert.ok(result.seconds > 4 && result.seconds < 5);
  });

  it('are refused with a reason, in words that quote nothing from the file', async () => {
    const whole = await converted('named.m4a', '-metadata', 'title=SECRET-TITLE');
    execFileSync('ffmpeg', [
      ...quiet,
      '-f',
      'lavfi',
      '-i',
      'color=d=1',
      '-metadata',
      'title=SECRET-TITLE',
      inFolder('mute.mp4'),
    ]);
    for (const [bytes, reason] of [
      [whole.subarray(0, whole.length / 2), /moov/],
      [await readFile(inFolder('mute.mp4')), /no sound track/],
      [Buffer.from('SECRET-TITLE is the beginning of a letter, not of a recording.'), /not a recording/],
      [Buffer.alloc(5000, 0xff), /not a recording/],
    ] as const) {
      await assert.rejects(clip(bytes), (error: unknown) => {
        assert.ok(error instanceof AudioError);
        assert.equal(error.code, 'unreadable_audio');
        assert.match(error.message, reason);
        assert.doesNotMatch(error.message, /SECRET/);
        return true;
      });
    }
  });

  it('are refused without ffmpeg, saying what to send or install', async () => {
    const wanted = { code: 'unsupported_media_type', message: /Send WAV, or install ffmpeg/ };
    await assert.rejects(clip(await converted('none.flac'), { ffmpegPath: null }), wanted);
    await assert.rejects(clip(await converted('none.wav', '-c:a', 'adpcm_ms'), { ffmpegPath: null }), wanted);
    await assert.rejects(clip(Buffer.from('no recording at all'), { ffmpegPath: null }), wanted);
    await assert.rejects(clip(await converted('none.ogg'), { ffmpegPath: inFolder('nowhere') }), {
      code: 'unsupported_media_type',
      message: /could not be started/,
    });
  });

  it('cannot make ffmpeg open other files', async () => {
    await converted('other.mp3');
    for (const [name, text] of [
      ['list.m3u8', '#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:5,\nother.mp3\n#EXT-X-ENDLIST\n'],
      ['list.txt', 'ffconcat version 1.0\nfile other.mp3\n'],
    ] as const) {
      const filePath = inFolder(name);
      await writeFile(filePath, text);
      await assert.rejects(clip(Buffer.from(text)), { code: 'unreadable_audio' });
      await assert.rejects(clip(Buffer.from(text), { filePath }), { code: 'unreadable_audio' });
    }
  });
});

describe('the ffmpeg process', () => {
  it('is found on the PATH', async () => {
    assert.match((await findFfmpeg()) ?? '', /ffmpeg$/);
  });

  it('is not found where there is none', async () => {
    const { PATH } = process.env;
    Object.assign(process.env, { PATH: folder });
    try {
      assert.equal(await findFfmpeg(), null);
    } finally {
      Object.assign(process.env, { PATH });
    }
  });

  it('ends when the caller aborts', async () => {
    const { path, isRunning } = await program('sleeper', 'exec sleep 60');
    const abort = new AbortController();
    const reading = clip(Buffer.from('fLaC....'), { ffmpegPath: path, signal: abort.signal });
    await until(isRunning);
    abort.abort(new Error('gone'));
    await assert.rejects(reading, { message: 'gone' });
    await until(async () => !(await isRunning()));
  });

  it('ends when it gives more than the caller wants', async () => {
    await writeFile(inFolder('open.wav'), writeWav([], { dataSize: 0xffff_ffff }));
    const { path, isRunning } = await program('flood', `cat ${inFolder('open.wav')}; exec cat /dev/zero`);
    await assert.rejects(clip(Buffer.from('fLaC....'), { ffmpegPath: path }), { code: 'audio_too_long' });
    await until(async () => !(await isRunning()));
  });

  it('ends when it is stuck', async () => {
    const { path, isRunning } = await program('stuck', 'exec sleep 60');
    const output = transcodeToWav(
      { bytes: inPieces(Buffer.from('fLaC....')) },
      { ffmpegPath: path, stallMs: 100 },
    );
    await assert.rejects(output.next(), { code: 'unreadable_audio', message: /too long/ });
    assert.equal(await isRunning(), false);
  });

  it('is not taken for stuck while the recording is slow to arrive or to be used', async () => {
    const bytes = await converted('slow.flac');
    async function* slowly(): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(0, 5000);
      await setTimeout(900);
      yield bytes.subarray(5000);
    }
    const ffmpegPath = (await findFfmpeg()) ?? '';
    let length = 0;
    for await (const piece of transcodeToWav({ bytes: slowly() }, { ffmpegPath, stallMs: 600 })) {
      if (length === 0) await setTimeout(900);
      length += piece.length;
    }
    assert.ok(length > 5 * 44_100 * 4);
  });

  it('passes on what broke the source', async () => {
    const bytes = await converted('broken.flac');
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(0, 20_000);
      throw new Error('connection reset');
    }
    await assert.rejects(readClip(broken(), limits), { message: 'connection reset' });
  });

  it('runs a few times at once; some wait, the rest are told to come back', async () => {
    const { path } = await program('busy', 'exec sleep 60');
    const abort = new AbortController();
    const readings = Array.from({ length: 400 }, () =>
      clip(Buffer.from('fLaC....'), { ffmpegPath: path, signal: abort.signal }).catch(
        (error: unknown) => error,
      ),
    );
    const refusal = await Promise.race(readings);
    assert.ok(refusal instanceof AudioError && refusal.code === 'overloaded');
    abort.abort(new Error('gone'));
    const outcomes = await Promise.all(readings);
    assert.ok(
      outcomes.filter((outcome) => outcome instanceof Error && outcome.message === 'gone').length >= 68,
    );

    const flac = await converted('again.flac');
    const again = await Promise.all(Array.from({ length: 12 }, () => clip(flac)));
    assert.ok(again.every(({ seconds }) => seconds === 5));
  });
});

/** Codecs shift a recording by some milliseconds; the best match among all shifts up to 80 ms. */
function bestMatch(samples: Float32Array): number {
  const expected = voice(5, 16_000).subarray(16_000, 24_000);
  let best = -Infinity;
  for (let shift = -400; shift <= 1300; shift++) {
    const start = 16_000 + shift;
    best = Math.max(best, signalToNoise(expected, samples.subarray(start, start + expected.length)));
  }
  return best;
}
