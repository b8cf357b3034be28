import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { COMMAND, ROOT, TEST_MODELS } from '@undertone/testing/paths';
import type { ProgramCall } from './program-thread.ts';

export { COMMAND, ROOT, VOICES } from '@undertone/testing/paths';

/** The settings of a command with the shipped models instead of the test models. */
export const SHIPPED = { SERVICE_MODELS_DIR: '' };

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

/** The environment of every command: the test models, and none of the developer's own settings. */
function environment(more: Record<string, string>): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, SERVICE_MODELS_DIR: TEST_MODELS, ...more };
}

const idleThreads: Worker[] = [];

/** Runs the command's own function on a thread, without the half second that a process needs to start. */
export async function undertone(
  args: readonly string[],
  { env = {}, input = new Uint8Array() }: Omit<RunOptions, 'nodeArgs'> = {},
): Promise<Outcome> {
  const thread = idleThreads.pop() ?? new Worker(new URL('./program-thread.ts', import.meta.url));
  thread.ref();
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const ended = (code: number) => reject(new Error(`the command ended its thread with code ${code}`));
  thread.once('message', resolve).once('error', reject).once('exit', ended);
  const call: ProgramCall = { args, env: environment(env), input };
  thread.postMessage(call);
  const outcome = await promise;
  thread.off('error', reject).off('exit', ended);
  // An idle thread does not keep the test file running.
  thread.unref();
  idleThreads.push(thread);
  return outcome;
}

/** Runs the real command until it exits. */
export async function undertoneProcess(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
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
  return spawn(process.execPath, [...nodeArgs, COMMAND, ...args], { cwd: ROOT, env: environment(env) });
}

/** The complete output of a program. */
export function output(stream: ChildProcess['stdout']): Promise<string> {
  return stream === null ? Promise.resolve('') : text(stream);
}
