import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AudioError } from '../errors.ts';
import { findFfmpeg } from './find.ts';
import { type Kind, Slots } from './slots.ts';
import { StallWatch } from './stall-watch.ts';

const STALL_MS = 20_000;
const MOST_COMPLAINTS = 4096;

/** Containers that hold their sound themselves. Playlists would make ffmpeg open what they name. */
const CONTAINERS = [
  'wav,w64,aiff,au,caf,flac,ogg,mp3,aac,ac3,eac3,amr,amrnb,amrwb,ape,wv,tta,tak,dsf,mpc,mpc8,voc,gsm,loas',
  'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,avi,flv,mpeg,mpegts,rm,oma,xwma,dts,truehd,sox,ircam',
].join(',');

export interface FfmpegOptions {
  /** Null for none; looked for on the PATH each time it is needed where not given. */
  readonly path?: string | null | undefined;
  readonly slots?: Slots;
  readonly stallMs?: number;
  readonly spawn?: typeof spawn;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The machine's ffmpeg, for every format but plain WAV. */
export class Ffmpeg {
  readonly #options: FfmpegOptions;
  readonly #slots: Slots;

  constructor(options: FfmpegOptions = {}) {
    this.#options = options;
    this.#slots = options.slots ?? new Slots();
  }

  /** Null where there is none. */
  async find(): Promise<string | null> {
    return this.#options.path === undefined ? await findFfmpeg() : this.#options.path;
  }

  /**
   * Any recording that ffmpeg reads -> a WAV stream at the recording's own rate and channels, as fast as it is read.
   * The stream must be read to its end or closed: it holds a slot.
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
          ...['-nostdin', '-hide_banner', '-loglevel', 'error', '-threads', '1'],
          ...['-protocol_whitelist', 'pipe', '-format_whitelist', CONTAINERS, '-i', 'pipe:0'],
          ...[
            '-map',
            '0:a:0',
            '-map_metadata',
            '-1',
            '-bitexact',
            '-c:a',
            'pcm_f32le',
            '-f',
            'wav',
            'pipe:1',
          ],
        ],
        // What parses bytes from anywhere gets none of our settings and keys.
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
    fed.catch(() => undefined); // looked at below, unless something worse comes first
    let produced = 0;
    try {
      for await (const piece of outputOf(child)) {
        produced += piece.length;
        watch.pause();
        yield piece;
        watch.resume();
      }
      const { failure, complaints } = await ended;
      signal?.throwIfAborted();
      if (failure !== null) throw cannotStart(failure);
      if (watch.stalled) throw unreadable('Reading this recording took too long. Send it as WAV.');
      await fed;
      // What came before a damaged place is used, as with a WAV that is cut short.
      if (produced === 0) throw unreadable(reasonFor(complaints));
    } finally {
      watch.stop();
      signal?.removeEventListener('abort', kill);
      kill();
      await ended;
    }
  }
}

/** Gives ffmpeg the recording as fast as it takes it. Throws only what the source throws. */
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
    // ffmpeg closes its input when it has seen enough, which is no error of ours.
  }
  if (broken !== null) throw (broken as { cause: unknown }).cause;
}

async function* outputOf(child: Child): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of child.stdout ?? []) yield piece;
  } catch {
    // A process that never started has an output that breaks; `whenEnded` knows.
  }
}

interface Ending {
  /** Why it never started. */
  readonly failure: unknown;
  readonly complaints: string;
}

function whenEnded(child: Child): Promise<Ending> {
  let complaints = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (complaints.length < MOST_COMPLAINTS) complaints += text;
  });
  return new Promise((resolve) => {
    child.on('error', (error) => {
      if (child.pid === undefined) resolve({ failure: error, complaints });
    });
    // A shell or loader that could not run it ends with 126 or 127.
    child.on('close', (code) => {
      resolve({ failure: code === 126 || code === 127 ? { code: 'ENOEXEC' } : null, complaints });
    });
  });
}

/** Our own words for what ffmpeg says: its lines may quote names and titles from the file. */
function reasonFor(complaints: string): string {
  if (/moov atom not found/.test(complaints)) {
    return 'The index (moov) of this recording is missing: it was probably cut short. Send it again.';
  }
  if (/matches no streams|does not contain any stream/.test(complaints))
    return 'This file has no sound track.';
  if (/decoder.*not found|unknown decoder/i.test(complaints)) {
    return 'ffmpeg on this server lacks the codec of this recording. Send it as WAV.';
  }
  return 'This file is damaged or is not a recording. Send it as WAV.';
}

export function unreadable(message: string): AudioError {
  return new AudioError('unreadable_audio', message);
}

/** A missing or broken program is one thing, a machine that has no room for one more process another. */
function cannotStart(error: unknown): AudioError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOEXEC') {
    return new AudioError(
      'unsupported_media_type',
      'ffmpeg, which reads this format, cannot be started on this server. Send WAV, or repair the installation of ffmpeg.',
    );
  }
  return new AudioError(
    'overloaded',
    'The server has no room for another ffmpeg process. Try again in a moment.',
  );
}
