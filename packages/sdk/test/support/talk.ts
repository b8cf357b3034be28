import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export const VOICES = fileURLToPath(new URL('../../../../examples/voices/', import.meta.url));

const RATE = 16_000;
const BYTES_A_SECOND = RATE * 2;

/** A long WAV of real voices, one after another, over and over: 16 kHz, mono, 16 bit. */
export async function talk(seconds: number): Promise<Buffer> {
  const wanted = Math.round(seconds * RATE) * 2;
  const voices = await Promise.all((await readdir(VOICES)).sort().map(readSamples));
  const pieces: Buffer[] = [];
  let length = 0;
  for (let i = 0; length < wanted; i++) {
    const piece = voices[i % voices.length]?.subarray(0, wanted - length) ?? Buffer.alloc(0);
    pieces.push(piece);
    length += piece.length;
  }
  return Buffer.concat([header(wanted), ...pieces]);
}

async function readSamples(name: string): Promise<Buffer> {
  const file = await readFile(VOICES + name);
  const data = file.indexOf('data');
  return file.subarray(data + 8, data + 8 + file.readUInt32LE(data + 4));
}

function header(dataBytes: number): Buffer {
  const bytes = Buffer.alloc(44);
  bytes.write('RIFF', 0);
  bytes.writeUInt32LE(36 + dataBytes, 4);
  bytes.write('WAVEfmt ', 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(RATE, 24);
  bytes.writeUInt32LE(BYTES_A_SECOND, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36);
  bytes.writeUInt32LE(dataBytes, 40);
  return bytes;
}
