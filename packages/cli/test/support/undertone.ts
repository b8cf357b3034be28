import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ROOT } from '@undertone/testing/paths';

export { ROOT, VOICES } from '@undertone/testing/paths';

export const COMMAND = fileURLToPath(new URL('../../bin/undertone.js', import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: Record<string, string>;
  readonly input?: Uint8Array;
  readonly nodeArgs?: readonly string[];
}

/** Runs the real command until it exits. */
export async function undertone(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options);
  child.stdin?.on('error', () => undefined).end(options.input);
  const [stdout, stderr, [code]] = await Promise.all([
    output(child.stdout),
    output(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

export interface Serving {
  readonly url: string;
  readonly pid: number;
  /** Waits for a match in its output and returns it. */
  prints(pattern: RegExp): Promise<string>;
  /** Its output so far, standard error included. */
  printed(): string;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
}

/** Runs `undertone serve` on a free port until it is ready. */
export async function serve(
  dataDir: string,
  args: readonly string[] = [],
  env = {},
  nodeArgs: readonly string[] = [],
): Promise<Serving> {
  const child = start(['serve', '--port', '0', '--data-dir', dataDir, ...args], { env, nodeArgs });
  const ended = once(child, 'close');
  let stopping = false;
  let printed = '';
  child.on('close', (code, signal) => {
    if (!stopping) process.stderr.write(`The server stopped unexpectedly (${code ?? signal}): ${printed}\n`);
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      printed += piece;
      child.emit('printed');
    });
  }
  const prints = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const match = pattern.exec(printed);
      if (match) return match[1] ?? match[0];
      const more = await Promise.race([once(child, 'printed').then(() => true), ended.then(() => false)]);
      if (!more) throw new Error(`the server stopped: ${printed}`);
    }
  };
  return {
    url: await prints(/url\W[^:]*: ?"(http[^"]+)"/),
    pid: child.pid ?? 0,
    prints,
    printed: () => printed,
    stop: async () => {
      stopping = true;
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
  };
}

/** A folder that is deleted after the test. */
export async function temporaryFolder(test: { after(clean: () => Promise<void>): void }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-cli-'));
  test.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts the real command. */
export function start(args: readonly string[], { env = {}, nodeArgs = [] }: RunOptions = {}): ChildProcess {
  // Without the developer's own settings.
  const { PATH = '', HOME = '' } = process.env;
  return spawn(process.execPath, [...nodeArgs, COMMAND, ...args], { cwd: ROOT, env: { PATH, HOME, ...env } });
}

/** The complete output of a program. */
export function output(stream: ChildProcess['stdout']): Promise<string> {
  return stream === null ? Promise.resolve('') : text(stream);
}
