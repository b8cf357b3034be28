import type { KeyLimits, LimitChanges, OwnerUse } from '@undertone/server';
import { byteCount } from '@undertone/server/settings';
import { InvalidArgumentError } from 'commander';

type LimitName = keyof KeyLimits;

const MAX = 1_000_000;

/** In the order in which they are shown. */
const PARSERS: Record<LimitName, (text: string) => number> = {
  rate: count,
  streams: count,
  queued: count,
  open: count,
  storage: byteCount,
  audio_hours: (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN),
};

export const LIMIT_NAMES = Object.keys(PARSERS) as LimitName[];

/** `rate=600,storage=10GB`. `default` goes back to the server's setting. */
export function parseLimits(text: string): LimitChanges {
  const changes: LimitChanges = {};
  for (const entry of text.split(',')) {
    const [name = '', value = '', more] = entry.split('=').map((word) => word.trim());
    if (!isLimitName(name) || more !== undefined) {
      throw new InvalidArgumentError(
        `Use NAME=NUMBER, separated by commas. The names are ${LIMIT_NAMES.join(', ')}.`,
      );
    }
    changes[name] = value === 'default' ? null : parseLimit(name, value);
  }
  return changes;
}

function parseLimit(name: LimitName, value: string): number {
  try {
    const limit = PARSERS[name](value);
    if (limit >= 0 && (limit <= MAX || name === 'storage')) return limit;
  } catch {
    // The same message for all.
  }
  const example = name === 'storage' ? 'a number of bytes such as 10GB' : `a number from 0 to ${MAX}`;
  throw new InvalidArgumentError(`${name} must be ${example}, or default.`);
}

function count(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(PARSERS, name);
}

/** As `parseLimits` reads it. */
export function showLimits(limits: Partial<KeyLimits>): string {
  const named = LIMIT_NAMES.filter((name) => limits[name] !== undefined);
  const show = (name: LimitName) => (name === 'storage' ? bytes(limits.storage ?? 0) : String(limits[name]));
  return named.map((name) => `${name}=${show(name)}`).join(',') || 'default';
}

export function showUse(use: OwnerUse | undefined): string {
  if (use === undefined) return 'none';
  const { queued, open, storage, audioSeconds } = use;
  const shown = [`queued=${queued}`, `open=${open}`, `storage=${bytes(storage)}`];
  return [...shown, `audio_hours=${Number((audioSeconds / 3_600).toFixed(2))}`].join(',');
}

/** The largest decimal unit that is exact, so that the text means the same number again. */
function bytes(count: number): string {
  const units = ['', 'KB', 'MB', 'GB', 'TB'];
  let power = 0;
  while (count > 0 && count % 1000 ** (power + 1) === 0 && power < units.length - 1) power++;
  return `${count / 1000 ** power}${units[power]}`;
}
