/**
 * Minutes and seconds from the start, as in `00:05` or `125:05`. Minutes count on past 99, so a recording of any
 * length has one format.
 */
export function formatTimestamp(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new RangeError(`A timestamp needs a finite number of seconds from 0 up, not ${seconds}.`);
  }
  const whole = Math.floor(seconds);
  return `${pad(Math.floor(whole / 60))}:${pad(whole % 60)}`;
}

/** The seconds from the start that a timestamp such as `00:05` or `125:05` stands for. */
export function parseTimestamp(t: string): number {
  const [minutes = Number.NaN, seconds = Number.NaN] = t.split(':').map(Number);
  return minutes * 60 + seconds;
}

export interface Subtitle {
  /** Seconds from the start of the recording. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A SubRip (.srt) file. */
export function formatSrt(subtitles: readonly Subtitle[]): string {
  return subtitles
    .map(({ start, end, text }, i) => `${i + 1}\n${srtTime(start)} --> ${srtTime(end)}\n${text}\n`)
    .join('\n');
}

function srtTime(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const [hours, minutes, rest] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map(Math.floor);
  return `${pad(hours)}:${pad(minutes)}:${pad(rest)},${String(ms % 1000).padStart(3, '0')}`;
}

function pad(value = 0): string {
  return String(value).padStart(2, '0');
}
