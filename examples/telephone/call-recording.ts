export type Track = 'inbound' | 'outbound';

const RATE = 8_000;
const MULAW = 7;
const SILENCE = 0xff;
/** Callers choose the times of their frames, which must not make this program allocate any amount of memory. */
const MAX_SAMPLES = 4 * 60 * 60 * RATE;

/**
 * Both sides of a call as one WAV file: channel 0 is the caller (inbound), channel 1 the other side. An hour takes 58 MB of
 * memory.
 */
export class CallRecording {
  readonly #frames: { readonly track: Track; readonly at: number; readonly samples: Buffer }[] = [];
  #length = 0;

  /** The time is that of the frame, from the start of the call: a track that is silent may send nothing. */
  add(track: Track, milliseconds: number, samples: Buffer): void {
    const at = Math.round((milliseconds * RATE) / 1000);
    if (!(at >= 0 && at + samples.length <= MAX_SAMPLES)) return;
    this.#frames.push({ track, at, samples });
    this.#length = Math.max(this.#length, at + samples.length);
  }

  get seconds(): number {
    return this.#length / RATE;
  }

  toWav(): Buffer {
    const data = Buffer.alloc(2 * this.#length, SILENCE);
    for (const { track, at, samples } of this.#frames) {
      const channel = track === 'inbound' ? 0 : 1;
      for (const [i, sample] of samples.entries()) data[2 * (at + i) + channel] = sample;
    }
    return Buffer.concat([headerOf(data.length), data]);
  }
}

/** Mu-law, two channels of 8 bits. */
function headerOf(bytes: number): Buffer {
  const header = Buffer.alloc(46);
  header.write('RIFF', 0);
  header.writeUInt32LE(38 + bytes, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(18, 16);
  header.writeUInt16LE(MULAW, 20);
  header.writeUInt16LE(2, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(2 * RATE, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 38);
  header.writeUInt32LE(bytes, 42);
  return header;
}
