import { fileForm } from '@undertone/testing/form';
import { writeWav } from '@undertone/testing/wav';

export { FORM_TYPE } from '@undertone/testing/form';

/** A voice-like sound: a buzz whose loudness rises and falls like syllables. */
export function voiceLike(seconds: number, rate: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: Math.round(seconds * rate) }, (_, i) => {
    const t = i / rate;
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 3 * t));
    let buzz = 0;
    for (let harmonic = 1; harmonic <= 12; harmonic++) {
      buzz += Math.sin(2 * Math.PI * 140 * harmonic * t + harmonic) / harmonic;
    }
    return 0.18 * syllable * buzz;
  });
}

/** A typical short recording: mono, 44.1 kHz, 16 bit, as long as one step of a long recording. */
export function clipForm(seconds = 5): Buffer {
  return fileForm(writeWav(voiceLike(seconds, 44_100)));
}
