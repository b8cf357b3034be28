import { labelOf, type TimedStep } from '@undertone/contract';

/** Merges steps that would be narrower than two pixels into the label with the most confidence. */
export function cellsOf(steps: readonly TimedStep[], width: number): TimedStep[] {
  const count = Math.min(steps.length, Math.max(1, Math.floor(width / 2)));
  if (count === steps.length) return [...steps];
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * steps.length) / count);
    const group = steps.slice(from, Math.floor(((i + 1) * steps.length) / count));
    const start = group[0]?.start ?? 0;
    const end = group.at(-1)?.end ?? 0;
    return { ...heaviest(group), start, end };
  });
}

function heaviest(group: readonly TimedStep[]): TimedStep {
  const weights = new Map<string, number>();
  for (const step of group) {
    const label = labelOf(step);
    weights.set(label, (weights.get(label) ?? 0) + step.confidence);
  }
  const weight = (step: TimedStep) => weights.get(labelOf(step)) ?? 0;
  return group.reduce((best, step) => (weight(step) > weight(best) ? step : best));
}
