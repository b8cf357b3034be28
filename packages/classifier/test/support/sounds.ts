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
  const samples = new Float32Array(Math.round(seconds * rate));
  const strengths = new Float64Array(21);
  for (let i = 0; i < samples.length; i++) {
    const t = i / rate;
    if (i % 64 === 0) {
      for (let k = 1; k <= 20; k++)
        strengths[k] = 0.05 + Math.exp(-(((k * pitch - 600 - 300 * Math.sin(3 * t)) / 500) ** 2));
    }
    samples[i] =
      0.1 * Math.max(0, Math.sin(2 * Math.PI * 2.5 * t)) * harmonics(2 * Math.PI * pitch * t, strengths);
  }
  return samples;
}

/** The sum of strengths[k] * sin(k * phase), each sine from the two before it. */
function harmonics(phase: number, strengths: Float64Array): number {
  const twice = 2 * Math.cos(phase);
  let [before, sine, sum] = [0, Math.sin(phase), 0];
  for (let k = 1; k < strengths.length; k++) {
    sum += (strengths[k] as number) * sine;
    [before, sine] = [sine, twice * sine - before];
  }
  return sum;
}
