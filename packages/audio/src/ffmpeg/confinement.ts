// ffmpeg parses untrusted bytes. Where the machine allows it, it runs without a network and without files.
import { spawn } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FFMPEG_ARGUMENTS } from './command-line.ts';
import { findProgram } from './find.ts';
import type { Kind } from './slots.ts';

export type Sandbox = 'bubblewrap' | 'unshare' | 'none';

export interface Confinement {
  readonly sandbox: Sandbox;
  /** Memory, CPU time and files written are limited. */
  readonly limits: boolean;
  /** The command that starts ffmpeg, by default to decode a recording. */
  readonly command: (kind: Kind, args?: readonly string[]) => Command;
}

type Command = readonly [program: string, ...args: string[]];

interface Limits {
  /** Address space. */
  readonly memoryBytes: number;
  readonly cpuSeconds: Readonly<Record<Kind, number>>;
}

const LIMITS: Limits = {
  memoryBytes: 1024 ** 3,
  cpuSeconds: { clip: 60, recording: 2 * 60 * 60 },
};

/** bubblewrap, unshare and prlimit report signals as 128 and their number, and their own errors with their name. */
export const SANDBOX_ERROR = /^(bwrap|unshare|prlimit|setpriv|sh|mount|pivot_root|umount): /m;

const known = new Map<string, Promise<Confinement>>();

/** The strictest confinement that works here. Found once for each ffmpeg, by running it. */
export function findConfinement(ffmpeg: string): Promise<Confinement> {
  const found = known.get(ffmpeg) ?? strictest(ffmpeg);
  known.set(ffmpeg, found);
  return found;
}

async function strictest(ffmpeg: string): Promise<Confinement> {
  const candidates = await confinements(ffmpeg);
  for (const candidate of candidates) {
    if (await works(candidate)) return candidate;
  }
  // Nothing works: the first recording will report why ffmpeg does not run.
  return unconfined(ffmpeg);
}

/** ffmpeg as it is. */
export function unconfined(ffmpeg: string): Confinement {
  return { sandbox: 'none', limits: false, command: (_kind, args = FFMPEG_ARGUMENTS) => [ffmpeg, ...args] };
}

/** Those whose programs are installed, the strictest first. */
export async function confinements(path: string, limits = LIMITS): Promise<Confinement[]> {
  if (process.platform !== 'linux') return [unconfined(path)];
  const ffmpeg = await realpath(path).catch(() => path);
  const bubblewrap = await findProgram('bwrap');
  const unshare = await findProgram('unshare');
  const prlimit = await findProgram('prlimit');
  const sandboxes: [Sandbox, string[]][] = [['none', []]];
  if (unshare !== null) sandboxes.unshift(['unshare', [unshare, ...UNSHARE]]);
  if (bubblewrap !== null) sandboxes.unshift(['bubblewrap', [bubblewrap, ...bubblewrapArguments(ffmpeg)]]);
  return (prlimit === null ? [null] : [prlimit, null]).flatMap((limiter) =>
    sandboxes.map(([sandbox, wrapper]) => ({
      sandbox,
      limits: limiter !== null,
      command: (kind: Kind, args = FFMPEG_ARGUMENTS) => {
        const limited = limiter === null ? [] : [limiter, ...limitArguments(limits, kind)];
        return [...limited, ...wrapper, ffmpeg, ...args] as unknown as Command;
      },
    })),
  );
}

function limitArguments({ memoryBytes, cpuSeconds }: Limits, kind: Kind): string[] {
  return [
    ...[`--as=${memoryBytes}`, `--cpu=${cpuSeconds[kind]}`, '--nofile=64'],
    // No file can be written, a core dump neither: it would contain a voice.
    ...['--fsize=0', '--core=0', '--'],
  ];
}

/**
 * An empty file system with the shared libraries and ffmpeg itself, read-only. No /proc, no /dev, no other processes. ffmpeg
 * is the first process of its namespace: bubblewrap's own would stay as a zombie where the server is that of a container.
 */
function bubblewrapArguments(ffmpeg: string): string[] {
  const libraries = new Set([
    ...['/lib', '/lib64', '/usr/lib', '/usr/lib64', join(dirname(dirname(ffmpeg)), 'lib')],
    ...['/etc/ld.so.cache', '/etc/alternatives'],
  ]);
  return [
    ...'--unshare-user --unshare-net --unshare-pid --unshare-ipc'.split(' '),
    ...'--as-pid-1 --die-with-parent --new-session --cap-drop ALL'.split(' '),
    ...[...libraries].flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--ro-bind', ffmpeg, ffmpeg, '--remount-ro', '/', '--chdir', '/', '--'],
  ];
}

/** The same with the tools of util-linux, but with all of /usr: they are in it. */
const UNSHARE = [
  ...'--user --map-root-user --mount --net --pid --ipc --fork --kill-child -- sh -euc'.split(' '),
  `PATH=/usr/sbin:/usr/bin:/sbin:/bin
  mount -t tmpfs -o mode=755 none /tmp
  cd /tmp
  mkdir -p usr etc/alternatives old
  ln -s usr/lib lib
  ln -s usr/lib64 lib64
  ln -s old/proc proc
  mount --bind -o ro /usr usr
  mount --bind -o ro /etc/alternatives etc/alternatives
  pivot_root . old
  cd /
  umount -l old
  exec setpriv --bounding-set -all --inh-caps -all --no-new-privs "$@"`,
  'sh',
];

const PROBE_MS = 5_000;

/** Decodes a tenth of a second of silence. */
async function works({ command }: Confinement): Promise<boolean> {
  const header = Buffer.from('.snd\0\0\0\x18\0\0\x03\x20\0\0\0\x01\0\0\x1f\x40\0\0\0\x01', 'latin1');
  const [program, ...args] = command('clip');
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: {} });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  // Without a matching /proc, bubblewrap hangs.
  const timer = setTimeout(() => resolve(false), PROBE_MS);
  let bytes = 0;
  child.on('error', () => resolve(false));
  child.stdin.on('error', () => undefined);
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  child.on('close', (code) => resolve(code === 0 && bytes > 800));
  child.stdin.end(Buffer.concat([header, Buffer.alloc(800, 0xff)]));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
    child.stdout.destroy();
  }
}
