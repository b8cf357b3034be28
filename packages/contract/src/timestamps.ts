/** Minutes and seconds from the start, as in `00:05` or `125:05`. Minutes count on past 99. */
export function formatTimestamp(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new RangeError(`A timestamp needs a finite number of seconds from 0 up, not ${seconds}.`);
  }
  const whole = Math.floor(seconds);
  const pad = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${pad(whole / 60)}:${pad(whole % 60)}`;
}

/** The seconds that a timestamp such as `00:05` or `125:05` stands for. */
export function parseTimestamp(t: string): number {
  const [minutes = Number.NaN, seconds = Number.NaN] = t.split(':').map(Number);
  return minutes * 60 + seconds;
}
