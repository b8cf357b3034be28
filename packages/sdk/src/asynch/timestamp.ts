/** Seconds from the start that a time stamp such as `00:05` or `125:05` stands for. */
export function parseTimestamp(t: string): number {
  const [minutes, seconds] = t.split(':').map(Number);
  return (minutes ?? Number.NaN) * 60 + (seconds ?? Number.NaN);
}
