/** How long the server keeps something, such as `23 h` or `40 min`. */
export function hoursUntil(time: string, now = Date.now()): string {
  const minutes = Math.max(0, Math.round((Date.parse(time) - now) / 60_000));
  return minutes < 60 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
