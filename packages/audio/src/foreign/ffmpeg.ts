import { type ChildProcess, spawn } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import type { ByteSource } from '../byte-reader.ts';
import { AudioError } from '../errors.ts';
import { takeSlot } from './slots.ts';
import { StallWatch } from './stall-watch.ts';

const STALL_MS = 20_000;
const MOST_COMPLAINTS = 4096;

/** Containers that hold their sound themselves. Playlists would make ffmpeg open what they name. */
const CONTAINERS = [
  'wav,w64,aiff,au,caf,flac,ogg,mp3,aac,ac3,eac3,amr,amrnb,amrwb,ape,wv,tta,tak,dsf,mpc,mpc8,voc,gsm,loas',
  'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,avi,flv,mpeg,mpegts,rm,oma,xwma,dts,truehd,sox,ircam',
].join(',');

/** A stream, or a file: in a file ffmpeg can seek. */
export type Recording = { readonly bytes: ByteSource } | { readonly filePath: string };

export interface TranscodeOptions {
  readonly ffmpegPath: string;
  readonly signal?: AbortSignal | undefined;
  readonly stallMs?: number | undefined;
}

/**
 * Any recording ffmpeg reads -> a WAV stream at the recording's own rate and channels. From there on
 * it goes the way of every WAV: one reader, one mix, one resampler, one set of checks.
 */
export async function* transcodeToWav(
  recording: Recording,
  { ffmpegPath, signal, stallMs = STALL_MS }: TranscodeOptions,
): AsyncGenerator<Uint8Array> {
  const leaveSlot = await takeSlot(signal);
  const child = startFfmpeg(ffmpegPath, recording);
  const kill = (): void => void child.kill('SIGKILL');
  const watch = new StallWatch(stallMs, kill);
  signal?.addEventListener('abort', kill);
  const ended = whenEnded(child);
  const fed = 'bytes' in recording ? feed(child, recording.bytes, watch) : null;
  fed?.catch(() => undefined); // looked at below, unless something worse comes first
  let produced = 0;
  try {
    for await (const piece of outputOf(child)) {
      produced += piece.length;
      watch.excuse();
      yield piece;
      watch.resume();
    }
    const { started, complaints } = await ended;
    signal?.throwIfAborted();
    if (!started) throw cannotStart();
    if (watch.stalled) throw unreadable('reading it took too long');
    await fed;
    // What came before a damaged place is used, as with a WAV that is cut short.
    if (produced === 0) throw unreadable(reasonFor(complaints));
  } finally {
    watch.stop();
    signal?.removeEventListener('abort', kill);
    kill();
    await ended;
    leaveSlot();
  }
}

function startFfmpeg(path: string, recording: Recording): ChildProcess {
  const [source, protocol] =
    'bytes' in recording ? ['pipe:0', 'pipe'] : [`file:${recording.filePath}`, 'file'];
  const { PATH = '' } = process.env;
  return spawn(
    path,
    [
      ...['-nostdin', '-hide_banner', '-loglevel', 'error', '-threads', '1'],
      ...['-protocol_whitelist', protocol, '-format_whitelist', CONTAINERS, '-i', source],
      ...['-map', '0:a:0', '-map_metadata', '-1', '-bitexact', '-c:a', 'pcm_f32le', '-f', 'wav', 'pipe:1'],
    ],
    // A parser of strangers' bytes has no business with our settings and keys.
    { stdio: ['bytes' in recording ? 'pipe' : 'ignore', 'pipe', 'pipe'], env: { PATH } },
  );
}

/** Gives ffmpeg the recording as fast as it takes it. Throws only what the source throws. */
async function feed(child: ChildProcess, bytes: ByteSource, watch: StallWatch): Promise<void> {
  let broken: { cause: unknown } | null = null;
  async function* watched(): AsyncGenerator<Uint8Array> {
    watch.excuse();
    try {
      for await (const piece of bytes) {
        watch.resume();
        yield piece;
        watch.excuse();
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

async function* outputOf(child: ChildProcess): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of child.stdout ?? []) yield piece;
  } catch {
    // A process that never started has an output that breaks; `whenEnded` knows.
  }
}

interface Ending {
  readonly started: boolean;
  readonly complaints: string;
}

function whenEnded(child: ChildProcess): Promise<Ending> {
  let complaints = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (complaints.length < MOST_COMPLAINTS) complaints += text;
  });
  return new Promise((resolve) => {
    child.on('error', () => resolve({ started: child.pid !== undefined, complaints }));
    child.on('close', () => resolve({ started: true, complaints }));
  });
}

/** Our own words for what ffmpeg says: its lines may quote names and titles from the file. */
function reasonFor(complaints: string): string {
  if (/moov atom not found/.test(complaints))
    return 'its index (moov) is missing, so it was probably cut short';
  if (/matches no streams|does not contain any stream/.test(complaints)) return 'it has no sound track';
  if (/decoder.*not found|unknown decoder/i.test(complaints)) return 'ffmpeg on this machine lacks its codec';
  return 'it is damaged or not a recording';
}

function unreadable(reason: string): AudioError {
  return new AudioError('unreadable_audio', `This recording cannot be read: ${reason}. Try it as WAV.`);
}

function cannotStart(): AudioError {
  return new AudioError(
    'unsupported_media_type',
    'ffmpeg, which reads this format, could not be started. Send WAV, or mend the installation of ffmpeg.',
  );
}
