import { designFilterBank, type FilterBank } from './filter-bank.ts';

/** One pass over the samples: `phases` outputs for every `stride` inputs. */
export interface StagePlan {
  readonly bank: FilterBank;
  readonly stride: number;
}

const LOWEST_RATE = 1_000;
const HIGHEST_RATE = 768_000;

/** The share of the band that comes through untouched; the rest is the filter's slope. */
const PASS_BAND = 0.9;

/** A plan is up to 1.5 MB, and anyone may send a file with yet another rate. */
const MOST_PLANS = 16;
const plans = new Map<string, readonly StagePlan[]>();

/**
 * How to get from one rate to the other. A steep filter is dear at a high rate, so a recording far
 * above the wanted rate is first thinned out by a whole number with a gentle filter, which lets
 * through what would fold only onto frequencies that the steep one removes afterwards.
 */
export function planStages(fromRate: number, toRate: number): readonly StagePlan[] {
  const key = `${fromRate}:${toRate}`;
  const known = plans.get(key);
  plans.delete(key);
  const plan = known ?? designStages(checkRate(fromRate), checkRate(toRate));
  plans.set(key, plan); // last in the map: the first is the one longest unused
  if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value ?? key);
  return plan;
}

function designStages(fromRate: number, toRate: number): readonly StagePlan[] {
  if (fromRate === toRate) return [];
  const edge = Math.min(fromRate, toRate) / 2;
  const stages: StagePlan[] = [];

  const thinning = Math.max(1, Math.floor(fromRate / (1.25 * toRate)));
  const thinnedRate = fromRate / thinning;
  if (thinning > 1) {
    const band = { pass: edge / fromRate, stop: (thinnedRate - edge) / fromRate };
    stages.push({ bank: designFilterBank(1, band), stride: thinning });
  }

  const divisor = greatestCommonDivisor(fromRate, toRate * thinning);
  const phases = (toRate * thinning) / divisor;
  const stride = fromRate / divisor;
  if (phases !== stride) {
    const band = { pass: (PASS_BAND * edge) / thinnedRate, stop: edge / thinnedRate };
    stages.push({ bank: designFilterBank(phases, band), stride });
  }
  return stages;
}

function checkRate(rate: number): number {
  if (Number.isInteger(rate) && rate >= LOWEST_RATE && rate <= HIGHEST_RATE) return rate;
  throw new RangeError(
    `A sample rate is a whole number from ${LOWEST_RATE} to ${HIGHEST_RATE}, not ${rate}.`,
  );
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
