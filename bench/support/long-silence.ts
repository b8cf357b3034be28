import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const RATE = 8_000;
const SAMPLES_PER_FRAME = 1_024;

/** Silence of any length in a few megabytes: one frame of AAC, repeated. */
export async function longSilence(seconds: number): Promise<Buffer> {
  const source = ['-f', 'lavfi', '-i', `anullsrc=r=${RATE}:cl=mono`, '-t', '10'];
  const args = ['-loglevel', 'error', ...source, '-c:a', 'aac', '-f', 'adts', 'pipe:1'];
  const { stdout } = await promisify(execFile)('ffmpeg', args, { encoding: 'buffer' });
  let frame = stdout;
  // Not one of the first frames, in which the encoder starts.
  for (let at = 0, number = 0; number < 10; number++, at += frame.length) {
    const length = ((stdout.readUInt8(at + 3) & 3) << 11) | (stdout.readUInt16BE(at + 4) >> 5);
    frame = stdout.subarray(at, at + length);
  }
  return Buffer.alloc(frame.length * Math.ceil((seconds * RATE) / SAMPLES_PER_FRAME), frame);
}
