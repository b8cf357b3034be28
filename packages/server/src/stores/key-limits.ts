/** What a key, and its owner, may use. 0 is no limit. */
export interface KeyLimits {
  /** Requests per minute. */
  readonly rate: number;
  /** Concurrent streams. */
  readonly streams: number;
  /** Requests waiting for a worker. */
  readonly queued: number;
  /** Unfinished uploads. */
  readonly open: number;
  /** Stored and arriving bytes. */
  readonly storage: number;
  /** Hours of audio in 24 hours. */
  readonly audio_hours: number;
}

export type LimitName = keyof KeyLimits;

/** The limits that a key or an owner names; the others come from the settings. */
export type NamedLimits = Partial<KeyLimits>;

/** Null goes back to the settings. */
export type LimitChanges = Partial<Record<LimitName, number | null>>;

/** Counted for each key. */
export const LIMITS_OF_KEYS = ['rate', 'streams'] as const satisfies LimitName[];
/** Counted over everything that all keys of an owner have together. */
export const LIMITS_OF_OWNERS = ['queued', 'open', 'storage', 'audio_hours'] as const satisfies LimitName[];

/** The named ones of these limits, changed. */
export function changedLimits(
  before: NamedLimits,
  changes: LimitChanges,
  names: readonly LimitName[],
): NamedLimits {
  const all: LimitChanges = { ...before, ...changes };
  return Object.fromEntries(
    Object.entries(all).filter(([name, value]) => isIn(names, name) && value !== null),
  );
}

export function namesAny(limits: LimitChanges, names: readonly LimitName[]): boolean {
  return Object.keys(limits).some((name) => isIn(names, name));
}

function isIn(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
