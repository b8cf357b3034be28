import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AudioError, DecoderDiedError, unreadable } from '../errors.ts';
import { type Confinement, findConfinement, SANDBOX_ERROR } from './confinement.ts';
import { findFfmpeg } from './find.ts';
import { type Kind, Slots } from './slots.ts';
import { StallWatch } from './stall-watch.ts';

const STALL_MS = 20_000;
/** More than a whitelist, which ffmpeg quotes when it refuses a codec. */
const MAX_STDERR_CHARS = 16_384;

/** Windows cannot start a program without this variable. */
const { SystemRoot } = process.env;
const EMPTY: NodeJS.ProcessEnv = SystemRoot === undefined ? {} : { SystemRoot };

export interface FfmpegOptions {
  /** Null for no ffmpeg. Default: looked up on the PATH for each recording. */
  readonly path?: string | null | undefined;
  /** Default: one per core. */
  readonly slots?: Slots;
  readonly stallMs?: number;
  readonly spawn?: typeof spawn;
  /** Default: the strictest that works. */
  readonly confine?: (ffmpeg: string) => Confinement | Promise<Confinement>;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The system's ffmpeg, for every format but uncompressed WAV. */
export class Ffmpeg {
  readonly #options: FfmpegOptions;
  readonly #slots: Slots;

  constructor(options: FfmpegOptions = {}) {
    this.#options = options;
    this.#slots = options.slots ?? new Slots(Math.max(2, availableParallelism()));
  }

  /** Its path, or null if there is none. */
  async find(): Promise<string | null> {
    return this.#options.path === undefined ? await findFfmpeg() : this.#options.path;
  }

  /** How it will be run, or null if there is none. Found out once, before the first recording comes. */
  async confinement(): Promise<Confinement | null> {
    const path = await this.find();
    return path === null ? null : this.#confine(path);
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
    const { command } = await this.#confine(path);
    const freeSlot = await this.#slots.take(kind, signal);
    try {
      yield* this.#run(this.#start(...command(kind)), recording, signal);
    } finally {
      freeSlot();
    }
  }

  async #confine(path: string): Promise<Confinement> {
    return (this.#options.confine ?? findConfinement)(path);
  }

  #start(program: string, ...args: string[]): Child {
    try {
      // A process that parses untrusted bytes gets none of our settings and keys.
      return (this.#options.spawn ?? spawn)(program, args, {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: EMPTY,
        // A group of its own, so that all of it can be killed.
        detached: true,
      });
    } catch (error) {
      throw cannotStart(error);
    }
  }

  async *#run(
    child: Child,
    recording: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    const kill = (): void => {
      if (child.exitCode === null && child.signalCode === null) killGroup(child);
    };
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
      killGroup(child);
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

/** With a sandbox around it, ffmpeg is a child of our child. */
function killGroup({ pid }: Child): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
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
    // A sandbox that was killed while it started leaves processes that hold the pipes open and wait for it.
    child.on('exit', () => killGroup(child));
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
  if (code !== 0 && (stderr === '' || SANDBOX_ERROR.test(stderr))) throw new DecoderDiedError();
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
  if (/decoder.*not found|unknown decoder|not on whitelist/i.test(stderr)) {
    return 'This server does not read the codec of this recording. Send it as WAV.';
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
