/** Deterministic test sounds. */
const RATE = 16_000;

export function silence(seconds: number): Float32Array {
  return new Float32Array(seconds * RATE);
}

export function sine(seconds: number, hertz = 440): Float32Array {
  return Float32Array.from(
    { length: seconds * RATE },
    (_, i) => 0.3 * Math.sin((2 * Math.PI * hertz * i) / RATE),
  );
}

export function noise(seconds: number, seed = 1): Float32Array {
  let state = seed >>> 0;
  return Float32Array.from({ length: seconds * RATE }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 - 0.5) * 0.2;
  });
}

/** A buzz with moving formants and pauses, closest to a voice. */
export function vowels(seconds: number, pitch = 140, rate = RATE): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: Math.round(seconds * rate) }, (_, i) => {
    const t = i / rate;
    const open = Math.max(0, Math.sin(2 * Math.PI * 2.5 * t));
    let sum = 0;
    for (let k = 1; k <= 20; k++) {
      const formant = Math.exp(-(((k * pitch - 600 - 300 * Math.sin(3 * t)) / 500) ** 2));
      sum += (formant + 0.05) * Math.sin(2 * Math.PI * k * pitch * t);
    }
    return 0.1 * open * sum;
  });
}
