import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { writeWav } from '@undertone/testing/wav';
import { unconfined } from '../src/ffmpeg/confinement.ts';
import { Slots } from '../src/ffmpeg/slots.ts';
import {
  AudioError,
  collectClip,
  convertClip,
  DecoderDiedError,
  Ffmpeg,
  type FfmpegOptions,
  findFfmpeg,
  memorySource,
  openSound,
  readClip,
} from '../src/index.ts';
import { sniff } from '../src/sound.ts';
import { decodeAll, inPieces, open, signalToNoise, voice } from './support/sounds.ts';

const sound = writeWav(voice(5, 44_100));
/** What the model gets of its second second. */
const expected = voice(2, 16_000).subarray(16_000, 20_000);
const quiet = ['-y', '-loglevel', 'error'];

/** A picture beside the sound, which is never decoded. */
const VIDEO = ['-map', '1:v', '-shortest'];

let folder: string;
const inFolder = (name: string): string => join(folder, name);

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'undertone-ffmpeg-'));
  await writeFile(inFolder('voice.wav'), sound);
});
after(() => rm(folder, { recursive: true }));

/** The voice in another format, made by ffmpeg. */
async function converted(name: string, ...options: string[]): Promise<Buffer> {
  execFileSync('ffmpeg', [...quiet, '-i', inFolder('voice.wav'), ...options, inFolder(name)]);
  return readFile(inFolder(name));
}

/** A program to run instead of ffmpeg, without a sandbox: it writes its process id to a file first. */
async function program(
  name: string,
  script: string,
): Promise<{ path: string; confine: typeof unconfined; isRunning: () => Promise<boolean> }> {
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
  return { path, confine: unconfined, isRunning };
}

/** The real ffmpeg, each process kept, and killed at once if the test says so. */
function spying(
  children: ReturnType<typeof spawn>[],
  isKilled: (count: number) => boolean = () => false,
): typeof spawn {
  const start = (...args: Parameters<typeof spawn>): ReturnType<typeof spawn> => {
    const child = spawn(...args);
    if (isKilled(children.push(child))) child.kill('SIGKILL');
    return child;
  };
  return start as typeof spawn;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    assert.ok(tries < 500, 'waited too long');
    await setTimeout(10);
  }
}

async function clip(bytes: Uint8Array, options: FfmpegOptions = {}, signal?: AbortSignal) {
  const { data, format } = await convertClip(bytes, { ffmpeg: new Ffmpeg(options), signal });
  return readClip(data, format);
}

/** The name of a file, what we recognise it as, how well it keeps the voice, and the options of ffmpeg. */
const FORMATS = [
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
  ['voice.mov', 'mp4', 80, '-c:a', 'pcm_s16be'],
  ['voice-alac.m4a', 'mp4', 80, '-c:a', 'alac'],
  ['voice.aac', 'aac', 10, '-b:a', '128k'],
  ['voice.opus', 'ogg', 10, '-c:a', 'libopus', '-b:a', '96k'],
  ['voice.wma', 'wma', 10, '-b:a', '128k'],
  ['voice.au', 'au', 25, '-c:a', 'pcm_mulaw'],
  ['voice.mp4', 'mp4', 10, ...VIDEO, '-c:a', 'aac', '-b:a', '128k'],
  ['voice-video.webm', 'webm', 10, ...VIDEO, '-c:a', 'libopus', '-b:a', '96k'],
  ['voice.avi', 'unknown', 10, ...VIDEO, '-c:a', 'mp3', '-b:a', '128k'],
  ['voice.flv', 'flv', 10, '-c:a', 'mp3', '-b:a', '128k'],
  ['voice.ts', 'unknown', 10, '-c:a', 'mp2', '-b:a', '192k'],
  ['voice-gsm.wav', 'wav', 0, '-ar', '8000', '-c:a', 'gsm_ms'],
] as const;

describe('recordings in other formats', () => {
  before(() => {
    // One run for all of them: loading its libraries takes ffmpeg longer than five seconds of sound.
    const inputs = ['-i', inFolder('voice.wav'), '-f', 'lavfi', '-i', 'testsrc=d=5:s=64x48:r=5'];
    const outputs = FORMATS.flatMap(([name, , , ...options]) => ['-map', '0:a', ...options, inFolder(name)]);
    execFileSync('ffmpeg', [...quiet, ...inputs, ...outputs]);
  });

  for (const [name, format, atLeast, ...options] of FORMATS) {
    it(`are read: ${name} ${options.join(' ')}`, async () => {
      const bytes = await readFile(inFolder(name));
      assert.equal(sniff(bytes), format);
      const match = bestMatch(await decodeAll(await open(inPieces(bytes, 5000), new Ffmpeg())));
      assert.ok(match > atLeast, `${match.toFixed(1)} dB`);
    });
  }

  it('are read from an old QuickTime file, which has no ftyp box and its index at the end', async () => {
    const bytes = await converted('old.mov', '-c:a', 'pcm_s16be');
    bytes.write('free', bytes.indexOf('ftyp'));
    const match = bestMatch(await decodeAll(await open(inPieces(bytes, 5000), new Ffmpeg())));
    assert.ok(match > 80, `${match.toFixed(1)} dB`);
  });

  it('are recognised by their bytes, however these arrive', async () => {
    const bytes = await converted('voice.flac');
    const sound = await open(inPieces(bytes, 1, 2, 70_000), new Ffmpeg());
    assert.deepEqual([sound.format.sampleRate, sound.format.channels], [44_100, 1]);
    sound.close();
  });

  it('are checked for rate and length', async () => {
    const low = await converted('low.flac', '-ar', '6000');
    await assert.rejects(clip(low), {
      code: 'sample_rate_too_low',
      figures: { min_sample_rate: 8000, actual_sample_rate: 6000 },
    });
    const short = await converted('short.flac', '-t', '3');
    await assert.rejects(clip(short), { code: 'audio_too_short' });
  });

  it('are used up to the damaged place', async () => {
    const bytes = await converted('cut.flac');
    const result = await clip(bytes.subarray(0, bytes.length * 0.9));
    assert.ok(result.seconds > 4 && result.seconds < 5);
  });

  it('are used with a damaged place in the middle', async () => {
    for (const name of ['middle.mp3', 'middle.flac']) {
      const bytes = await converted(name);
      const middle = Math.floor(bytes.length / 2);
      bytes.fill(0xa5, middle, middle + 500);
      const { seconds } = await clip(bytes);
      assert.ok(seconds > 4 && seconds < 5.2, `${name}: ${seconds} s`);
    }
  });

  it('are used up to their end when this is missing', async () => {
    for (const [name, ...options] of [
      ['cut.mp3'],
      ['cut-fast.m4a', '-movflags', '+faststart'],
      ['cut.ogg', '-page_duration', '100000'],
    ] as const) {
      const bytes = await converted(name, ...options);
      const { seconds } = await clip(bytes.subarray(0, bytes.length * 0.93));
      assert.ok(seconds > 4 && seconds < 5, `${name}: ${seconds} s`);
    }
  });

  it('are refused when hardly anything of them can be decoded', async () => {
    const bytes = await converted('ruined.m4a', '-movflags', '+faststart');
    const soundStart = bytes.indexOf('mdat') + 4;
    let state = 1;
    for (let at = Math.round(soundStart + (bytes.length - soundStart) * 0.1); at < bytes.length; at++) {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      bytes[at] = state >> 16;
    }
    await assert.rejects(clip(bytes), { code: 'unreadable_audio', message: /damaged: most of it cannot be/ });
  });

  it('are refused with a reason that quotes nothing from the file', async () => {
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
      [await readFile(inFolder('mute.mp4')), /^This file has no sound track\.$/],
      [Buffer.from('SECRET-TITLE is the beginning of a letter, not of a recording.'), /not an audio file/],
      [Buffer.alloc(5000, 0xff), /not an audio file/],
      [Buffer.alloc(0), /empty/],
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

  it('are refused without ffmpeg, with what to send or install', async () => {
    const wanted = {
      code: 'unsupported_media_type',
      message: /This server reads only WAV until ffmpeg is installed on it\. Send WAV, or install ffmpeg/,
    };
    await assert.rejects(clip(await converted('none.flac'), { path: null }), wanted);
    await assert.rejects(clip(await converted('none.wav', '-c:a', 'adpcm_ms'), { path: null }), wanted);
    await assert.rejects(clip(Buffer.from('no recording at all'), { path: null }), wanted);
  });

  it('cannot make ffmpeg open other files', async () => {
    await converted('other.mp3');
    const other = inFolder('other.mp3');
    for (const text of [
      `#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:5,\n${other}\n#EXT-X-ENDLIST\n`,
      `ffconcat version 1.0\nfile ${other}\n`,
    ]) {
      await assert.rejects(clip(Buffer.from(text)), { code: 'unreadable_audio' });
    }
  });
});

describe('the ffmpeg process', () => {
  it('is found on the PATH', async () => {
    assert.match((await findFfmpeg()) ?? '', /ffmpeg$/);
  });

  it('is not found if there is none', async () => {
    const { PATH } = process.env;
    Object.assign(process.env, { PATH: folder });
    try {
      assert.equal(await findFfmpeg(), null);
    } finally {
      Object.assign(process.env, { PATH });
    }
  });

  it('is found when it is installed later', async () => {
    const flac = await converted('later.flac');
    const found = (await findFfmpeg()) ?? '';
    const { PATH } = process.env;
    const ffmpeg = new Ffmpeg();
    const bin = await mkdtemp(join(folder, 'bin-'));
    Object.assign(process.env, { PATH: bin });
    try {
      await assert.rejects(open(memorySource(flac), ffmpeg), { code: 'unsupported_media_type' });
      await symlink(found, join(bin, 'ffmpeg'));
      (await open(memorySource(flac), ffmpeg)).close();
    } finally {
      Object.assign(process.env, { PATH });
    }
  });

  it('is killed on abort, even while the source hangs', async () => {
    const { isRunning, ...instead } = await program('sleeper', 'exec sleep 60');
    const abort = new AbortController();
    const hanging = {
      size: 100,
      async *read() {
        yield Buffer.from('fLaC........');
        await new Promise(() => undefined);
      },
    };
    const ffmpeg = new Ffmpeg(instead);
    const reading = openSound(hanging, { ffmpeg, kind: 'clip', signal: abort.signal });
    await until(isRunning);
    abort.abort(new Error('gone'));
    await assert.rejects(reading, { message: 'gone' });
    await until(async () => !(await isRunning()));
  });

  it('is killed when its output is too long for a clip', async () => {
    await writeFile(inFolder('open.wav'), writeWav([], { dataSize: 0xffff_ffff }));
    const { isRunning, ...instead } = await program(
      'flood',
      `cat ${inFolder('open.wav')}; exec cat /dev/zero`,
    );
    await assert.rejects(clip(Buffer.from('fLaC....'), instead), { code: 'audio_too_long' });
    await until(async () => !(await isRunning()));
  });

  it('is killed when it is stuck', async () => {
    const { isRunning, ...instead } = await program('stuck', 'exec sleep 60');
    await assert.rejects(clip(Buffer.from('fLaC....'), { ...instead, stallMs: 100 }), {
      code: 'unreadable_audio',
      message: /took too long/,
    });
    assert.equal(await isRunning(), false);
  });

  it('is not considered stuck while its input or the consumer of its output is slow', async (t) => {
    const bytes = await converted('slow.flac');
    t.mock.timers.enable({ apis: ['setInterval'] });
    const slowly = {
      size: bytes.length,
      async *read() {
        yield bytes.subarray(0, 5000);
        // Many times the stall limit, while ffmpeg waits for input.
        t.mock.timers.tick(60_000);
        yield bytes.subarray(5000);
      },
    };
    let length = 0;
    for await (const piece of (await open(slowly, new Ffmpeg({ stallMs: 600 }))).pieces) {
      if (length === 0) t.mock.timers.tick(60_000);
      length += piece.length;
    }
    assert.equal(length, 5 * 44_100 * 4);
  });

  it('passes on an error of the source', async () => {
    const bytes = await converted('broken.flac');
    const broken = {
      size: bytes.length,
      async *read() {
        yield bytes.subarray(0, 20_000);
        throw new Error('connection reset');
      },
    };
    const reading = open(broken, new Ffmpeg()).then(({ pieces, format }) => collectClip(pieces, format));
    await assert.rejects(reading, { message: 'connection reset' });
  });

  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGSEGV'] as const) {
    it(`${signal} in the middle of a recording is an error, not a shorter recording`, async () => {
      const mp3 = await converted('long.mp3', '-af', 'aloop=loop=-1:size=220500', '-t', '60', '-b:a', '64k');
      const children: ReturnType<typeof spawn>[] = [];
      const ffmpeg = new Ffmpeg({ spawn: spying(children) });
      const { pieces } = await open(memorySource(mp3), ffmpeg);
      let length = 0;
      const reading = (async () => {
        for await (const piece of pieces) {
          if (length === 0) children[0]?.kill(signal);
          length += piece.length;
        }
      })();
      await assert.rejects(reading, DecoderDiedError);
      assert.ok(length > 0 && length < 60 * 44_100 * 4);
    });
  }

  it('is started again for a clip when it was killed, once', async () => {
    const flac = await converted('killed.flac');
    const children: ReturnType<typeof spawn>[] = [];
    const always: typeof children = [];
    const killFirst = spying(children, (count) => count === 1);
    assert.equal((await clip(flac, { spawn: killFirst })).seconds, 5);
    assert.equal(children.length, 2);
    await assert.rejects(clip(flac, { spawn: spying(always, () => true) }), DecoderDiedError);
    assert.equal(always.length, 2);
  });

  it('frees its slot when it cannot be started, for any reason', async () => {
    const slots = new Slots(1);
    const flac = await converted('spawn.flac');
    await writeFile(inFolder('unusable'), 'not a program');
    await chmod(inFolder('unusable'), 0o755);
    const failing = (code: string, isThrown: boolean): typeof spawn => {
      const error = Object.assign(new Error(`spawn ${code}`), { code });
      const fail = (): ReturnType<typeof spawn> => {
        if (isThrown) throw error;
        // Like Node: a child without a process, and the error later.
        const child = spawn(inFolder('nowhere'));
        const emit = child.emit.bind(child);
        child.emit = (name: string, ...values: unknown[]) =>
          emit(name, ...(name === 'error' ? [error] : values));
        return child;
      };
      return fail as typeof spawn;
    };
    for (const [options, code] of [
      [{ path: inFolder('nowhere') }, 'unsupported_media_type'],
      [{ path: inFolder('voice.wav') }, 'unsupported_media_type'],
      [{ path: inFolder('unusable') }, 'unsupported_media_type'],
      [{ spawn: failing('EAGAIN', false) }, 'overloaded'],
      [{ spawn: failing('EMFILE', false) }, 'overloaded'],
      [{ spawn: failing('ENOMEM', true) }, 'overloaded'],
      [{ spawn: failing('EAGAIN', true) }, 'overloaded'],
      [{ spawn: failing('ENOENT', true) }, 'unsupported_media_type'],
    ] as const) {
      await assert.rejects(clip(flac, { ...options, slots }), { name: 'AudioError', code });
    }
    assert.equal((await clip(flac, { slots })).seconds, 5);
  });

  it('has a concurrency limit: some clips wait, the rest are refused', async () => {
    const { isRunning: _, ...instead } = await program('busy', 'exec sleep 60');
    const slots = new Slots(4);
    const abort = new AbortController();
    const readings = Array.from({ length: 100 }, () =>
      clip(Buffer.from('fLaC....'), { ...instead, slots }, abort.signal).catch((error: unknown) => error),
    );
    const refusal = await Promise.race(readings);
    assert.ok(refusal instanceof AudioError && refusal.code === 'overloaded');
    abort.abort(new Error('gone'));
    const outcomes = (await Promise.all(readings)) as Error[];
    assert.equal(outcomes.filter(({ message }) => message === 'gone').length, 4 + 64);

    const flac = await converted('again.flac');
    const again = await Promise.all(Array.from({ length: 12 }, () => clip(flac, { slots })));
    assert.ok(again.every(({ seconds }) => seconds === 5));
  });
});

/** Codecs shift a recording by some milliseconds: the best match among shifts up to 80 ms. */
function bestMatch(samples: Float32Array): number {
  let best = -Infinity;
  for (let shift = -800; shift <= 1300; shift++) {
    const start = 16_000 + shift;
    best = Math.max(best, signalToNoise(expected, samples.subarray(start, start + expected.length)));
  }
  return best;
}
