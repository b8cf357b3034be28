const HEADER_BYTES = 44;

/** 16-bit mono audio as a WAV file. */
export function wavOf(
  pieces: readonly (Blob | Uint8Array<ArrayBuffer> | Int16Array<ArrayBuffer>)[],
  bytes: number,
  sampleRate: number,
): Blob {
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const text = (at: number, word: string) => {
    for (let i = 0; i < word.length; i++) header.setUint8(at + i, word.charCodeAt(i));
  };
  text(0, 'RIFF');
  header.setUint32(4, 36 + bytes, true);
  text(8, 'WAVEfmt ');
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, sampleRate, true);
  header.setUint32(28, sampleRate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, 'data');
  header.setUint32(40, bytes, true);
  return new Blob([header, ...pieces], { type: 'audio/wav' });
}

/** Samples from -1 to 1 in 16 bits. */
export function to16Bit(samples: Float32Array): Int16Array<ArrayBuffer> {
  const whole = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i++) {
    whole[i] = Math.round(Math.max(-1, Math.min(1, samples[i] ?? 0)) * 32_767);
  }
  return whole;
}
