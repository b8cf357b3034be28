/** A mono 16-bit WAV of a voice-like sound: a buzzing tone that swells and pauses like syllables. */
export function voiceLikeWav(seconds: number, rate = 44_100): Buffer {
  const count = Math.round(seconds * rate);
  const wav = Buffer.alloc(44 + count * 2);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36 + count * 2, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(count * 2, 40);
  for (let i = 0; i < count; i++) {
    const t = i / rate;
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 3 * t));
    let buzz = 0;
    for (let harmonic = 1; harmonic <= 12; harmonic++) {
      buzz += Math.sin(2 * Math.PI * 140 * harmonic * t + harmonic) / harmonic;
    }
    wav.writeInt16LE(Math.round(6_000 * syllable * buzz), 44 + i * 2);
  }
  return wav;
}

const BOUNDARY = 'undertone-bench-boundary';

export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

export function form(file: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="voice.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
    ),
    file,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
}
