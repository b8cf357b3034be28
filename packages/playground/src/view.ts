// The visible part of a timeline: zoom and pan.
export interface View {
  readonly from: number;
  readonly to: number;
}

/** Nothing is more detailed than a step of a second. */
const MIN_SECONDS = 2;

export const ZOOM_STEP = 1.5;

/** Moves a view into the recording. */
export function clamped({ from, to }: View, seconds: number): View {
  const length = Math.min(seconds, Math.max(Math.min(MIN_SECONDS, seconds), to - from));
  const start = Math.max(0, Math.min(seconds - length, from));
  return { from: start, to: start + length };
}

/** Zooms in by a factor above 1 and out by one below; `at` stays where it is on the screen. */
export function zoomed(view: View, factor: number, at: number, seconds: number): View {
  const length = (view.to - view.from) / factor;
  const share = (at - view.from) / (view.to - view.from);
  const bounded = Math.min(seconds, Math.max(Math.min(MIN_SECONDS, seconds), length));
  const from = at - share * bounded;
  return clamped({ from, to: from + bounded }, seconds);
}

export function panned(view: View, by: number, seconds: number): View {
  return clamped({ from: view.from + by, to: view.to + by }, seconds);
}

/** Turns the page when playback leaves the view; otherwise the same view. */
export function following(view: View, at: number, seconds: number): View {
  if (at >= view.from && at < view.to) return view;
  return clamped({ from: at, to: at + view.to - view.from }, seconds);
}

export function isWhole(view: View, seconds: number): boolean {
  return view.from <= 0 && view.to >= seconds;
}
