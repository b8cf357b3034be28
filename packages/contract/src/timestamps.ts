/**
 * Minutes and seconds from the start, as in `00:05` or `125:05`: minutes count on past 99, so that a
 * recording of any length keeps one format.
 */
export function formatTimestamp(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new RangeError(`A time stamp counts seconds from the start, so it cannot be ${seconds}.`);
  }
  const whole = Math.floor(seconds);
  const minutes = Math.floor(whole / 60);
  return `${pad(minutes)}:${pad(whole % 60)}`;
}

/** Seconds from the start that a time stamp such as `00:05` or `125:05` stands for. */
export function parseTimestamp(t: string): number {
  const [minutes = Number.NaN, seconds = Number.NaN] = t.split(':').map(Number);
  return minutes * 60 + seconds;
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}
