// Runs the command line's own function on a thread, one command after another. A thread has its own environment, standard
// streams and exit code, as a process has.
import { Readable, Writable } from 'node:stream';
import { parentPort } from 'node:worker_threads';
import { runProgram } from '../../src/program.ts';

export interface ProgramCall {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: Uint8Array;
}

const INPUT_CHUNK_BYTES = 65_536;

parentPort?.on('message', async ({ args, env, input }: ProgramCall) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  const stdout = new Captured();
  const stderr = new Captured();
  for (const [name, value] of Object.entries({ stdin: Readable.from(chunks(input)), stdout, stderr })) {
    Object.defineProperty(process, name, { configurable: true, value });
  }
  const code = await runProgram(args);
  parentPort?.postMessage({ code, stdout: stdout.text(), stderr: stderr.text() });
});

class Captured extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

function* chunks(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += INPUT_CHUNK_BYTES) {
    yield bytes.subarray(at, at + INPUT_CHUNK_BYTES);
  }
}
