import type { Classifier, Models } from '@undertone/classifier';
import { type AllPredictions, DEFAULT_MODEL, type DiscreteResult, type Emotion } from '@undertone/contract';
import { unknownModel } from './problems.ts';

/** Four decimals. */
const UNITS = 10_000;

/** The result of one model, which must be in the catalogue. */
export function resultOf(models: Models, model: string): DiscreteResult {
  const probabilities = models[model];
  if (probabilities === undefined) throw new RangeError(`The catalogue has no model "${model}"`);
  return toResult(probabilities);
}

/**
 * Rounds probabilities for the wire by largest remainder, so that the rounded values add up to exactly 1, keep their
 * order, and `main_emotion` has the highest of them.
 */
export function toResult(probabilities: Readonly<Record<string, number>>): DiscreteResult {
  const entries = Object.entries(probabilities).map(([emotion, probability]) => {
    const exact = probability * UNITS;
    return { emotion, exact, units: Math.floor(exact) };
  });
  const byRemainder = entries.toSorted((a, b) => b.exact - b.units - (a.exact - a.units));
  let left = UNITS - entries.reduce((sum, { units }) => sum + units, 0);
  for (const entry of byRemainder) {
    if (left <= 0) break;
    entry.units++;
    left--;
  }
  const main = entries.reduce((best, entry) => (entry.exact > best.exact ? entry : best));
  return {
    main_emotion: main.emotion as Emotion,
    confidence: main.units / UNITS,
    all_predictions: Object.fromEntries(
      entries.map(({ emotion, units }) => [emotion, units / UNITS]),
    ) as AllPredictions,
  };
}

/** The name of the model that answers. A custom catalogue may have fewer models than the contract names. */
export function requireModel({ catalog }: Pick<Classifier, 'catalog'>, name: string = DEFAULT_MODEL): string {
  const models = catalog.models.map(({ id }) => id);
  if (models.includes(name)) return name;
  throw unknownModel(models);
}
