import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a program in a child process whose stderr looks like a terminal; returns its output. */
export async function runOnTerminal(program: string, env: Record<string, string>): Promise<string> {
  const terminal = 'Object.assign(process.stderr, { isTTY: true, columns: 100 });';
  const preload = `data:text/javascript,${encodeURIComponent(terminal)}`;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', preload, '--input-type=module', '--eval', program],
    { env: { ...process.env, ...env } },
  );
  return stderr + stdout;
}
