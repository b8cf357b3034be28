import { writeWav } from '../../packages/audio/test/support/wav.ts';

/** A mono 16-bit WAV of a voice-like sound: a buzzing tone that swells and pauses like syllables. */
export function voiceLikeWav(seconds: number, rate = 44_100): Buffer {
  const samples = Float32Array.from({ length: Math.round(seconds * rate) }, (_, i) => {
    const t = i / rate;
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 3 * t));
    let buzz = 0;
    for (let harmonic = 1; harmonic <= 12; harmonic++) {
      buzz += Math.sin(2 * Math.PI * 140 * harmonic * t + harmonic) / harmonic;
    }
    return 0.18 * syllable * buzz;
  });
  return writeWav(samples, { sampleRate: rate });
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
