import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AudioError, DecoderDiedError, unreadable } from '../errors.ts';
import { findFfmpeg } from './find.ts';
import { type Kind, Slots } from './slots.ts';
import { StallWatch } from './stall-watch.ts';

const STALL_MS = 20_000;
const MAX_STDERR_CHARS = 4096;

/** Self-contained formats. No playlists: ffmpeg would open the files they name. */
const CONTAINERS = [
  'wav,w64,aiff,au,caf,flac,ogg,mp3,aac,ac3,eac3,amr,amrnb,amrwb,ape,wv,tta,tak,dsf,mpc,mpc8,voc,gsm,loas',
  'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,avi,flv,mpeg,mpegts,rm,oma,xwma,dts,truehd,sox,ircam',
].join(',');

export interface FfmpegOptions {
  /** Null for no ffmpeg. Default: looked up on the PATH for each recording. */
  readonly path?: string | null | undefined;
  readonly slots?: Slots;
  readonly stallMs?: number;
  readonly spawn?: typeof spawn;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The system's ffmpeg, for every format but uncompressed WAV. */
export class Ffmpeg {
  readonly #options: FfmpegOptions;
  readonly #slots: Slots;

  constructor(options: FfmpegOptions = {}) {
    this.#options = options;
    this.#slots = options.slots ?? new Slots();
  }

  /** Its path, or null if there is none. */
  async find(): Promise<string | null> {
    return this.#options.path === undefined ? await findFfmpeg() : this.#options.path;
  }

  /**
   * Converts a recording to a WAV stream with the same sample rate and channels. The reader sets the pace. The stream
   * holds a slot: read it to its end or close it.
   */
  async *toWav(
    path: string,
    recording: AsyncIterable<Uint8Array>,
    { kind, signal }: { kind: Kind; signal?: AbortSignal | undefined },
  ): AsyncGenerator<Uint8Array> {
    const freeSlot = await this.#slots.take(kind, signal);
    try {
      yield* this.#run(this.#start(path), recording, signal);
    } finally {
      freeSlot();
    }
  }

  #start(path: string): Child {
    const { PATH = '' } = process.env;
    try {
      return (this.#options.spawn ?? spawn)(
        path,
        [
          ...'-nostdin -hide_banner -loglevel error -threads 1 -protocol_whitelist pipe'.split(' '),
          ...['-format_whitelist', CONTAINERS, '-i', 'pipe:0'],
          ...'-map 0:a:0 -map_metadata -1 -bitexact -c:a pcm_f32le -f wav pipe:1'.split(' '),
        ],
        // A process that parses untrusted bytes gets none of our settings and keys.
        { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH } },
      );
    } catch (error) {
      throw cannotStart(error);
    }
  }

  async *#run(
    child: Child,
    recording: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    const kill = (): void => void child.kill('SIGKILL');
    const watch = new StallWatch(this.#options.stallMs ?? STALL_MS, kill);
    signal?.addEventListener('abort', kill);
    const ended = whenEnded(child);
    const fed = feed(child, recording, watch);
    fed.catch(() => undefined); // awaited below, unless something else fails first
    let produced = 0;
    try {
      for await (const piece of outputOf(child)) {
        produced += piece.length;
        watch.pause();
        yield piece;
        watch.resume();
      }
      const ending = await ended;
      signal?.throwIfAborted();
      if (ending.failure !== null) throw cannotStart(ending.failure);
      if (watch.stalled) throw unreadable('Reading this recording took too long. Send it as WAV.');
      await fed;
      checkEnding(ending, produced);
    } finally {
      watch.stop();
      signal?.removeEventListener('abort', kill);
      kill();
      await ended;
    }
  }
}

/** Writes the recording to ffmpeg, with backpressure. Rejects only with errors of the source. */
async function feed(child: Child, recording: AsyncIterable<Uint8Array>, watch: StallWatch): Promise<void> {
  let broken: { cause: unknown } | null = null;
  async function* watched(): AsyncGenerator<Uint8Array> {
    watch.pause();
    try {
      for await (const piece of recording) {
        watch.resume();
        yield piece;
        watch.pause();
      }
    } catch (cause) {
      broken = { cause };
      child.kill('SIGKILL');
    }
    watch.resume();
  }
  try {
    if (child.stdin) await pipeline(watched, child.stdin);
  } catch {
    // ffmpeg closes its input once it has read enough. That is not an error.
  }
  if (broken !== null) throw (broken as { cause: unknown }).cause;
}

async function* outputOf(child: Child): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of child.stdout ?? []) yield piece;
  } catch {
    // The output of a process that never started breaks; `whenEnded` reports why.
  }
}

interface Ending {
  /** Why it did not start, or null. */
  readonly failure: unknown;
  /** Null if a signal killed it. */
  readonly code: number | null;
  readonly stderr: string;
}

function whenEnded(child: Child): Promise<Ending> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < MAX_STDERR_CHARS) stderr += text;
  });
  return new Promise((resolve) => {
    child.on('error', (failure) => {
      if (child.pid === undefined) resolve({ failure, code: null, stderr });
    });
    // Exit codes of a shell or loader that could not run it.
    child.on('close', (code) => {
      resolve({ failure: code === 126 || code === 127 ? { code: 'ENOEXEC' } : null, code, stderr });
    });
  });
}

/** ffmpeg handles SIGTERM itself: it ends its output properly, in mid-recording, and exits with this. */
const STOPPED_BY_SIGNAL = 255;

/**
 * Output without an error has the whole recording. ffmpeg decodes around damaged places and up to a missing end, and then
 * exits with 0; it exits with another code if it can read nothing or hardly anything. Whatever ends it for a reason of its
 * own, a signal or a lack of memory, may have ended it anywhere.
 */
function checkEnding({ code, stderr }: Ending, produced: number): void {
  const isKilled = code === null || code === STOPPED_BY_SIGNAL || isSignalOfChild(code);
  if (isKilled || /Cannot allocate memory/.test(stderr)) throw new DecoderDiedError();
  if (code === 0 && produced > 0) return;
  if (code !== 0 && stderr === '') throw new DecoderDiedError();
  throw unreadable(reasonFor(stderr, produced));
}

/** As reported by a shell or a sandbox between us and ffmpeg: 128 and the number of the signal. */
function isSignalOfChild(code: number): boolean {
  return code > 128 && code < 128 + 32;
}

/** Never quotes ffmpeg: its lines may contain names and titles from the file. */
function reasonFor(stderr: string, produced: number): string {
  if (produced > 0)
    return 'This recording is damaged: most of it cannot be decoded. Export it again, or send it as WAV.';
  if (/moov atom not found/.test(stderr)) {
    return 'The index (moov) of this recording is missing: it was probably cut short. Send it again.';
  }
  if (/matches no streams|does not contain any stream/.test(stderr)) return 'This file has no sound track.';
  if (/decoder.*not found|unknown decoder/i.test(stderr)) {
    return 'ffmpeg on this server lacks the codec of this recording. Send it as WAV.';
  }
  return 'This is not an audio file we can read. Try converting it to WAV.';
}

/** Tells a missing or broken program from a machine without resources for another process. */
function cannotStart(error: unknown): AudioError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOEXEC') {
    return new AudioError(
      'unsupported_media_type',
      'ffmpeg, which reads this format, cannot be started on this server. Send WAV, or repair the ffmpeg installation.',
    );
  }
  return new AudioError(
    'overloaded',
    'The server cannot start another ffmpeg process now. Try again in a moment.',
  );
}
