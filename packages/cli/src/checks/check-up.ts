/** What a check found. Where something is missing: whether the service needs it, and how to get it. */
export type CheckUp =
  | { readonly state: 'well'; readonly found: string }
  | { readonly state: 'useful' | 'needed'; readonly found: string; readonly mend: string };

export function well(found: string): CheckUp {
  return { state: 'well', found };
}

export function useful(found: string, mend: string): CheckUp {
  return { state: 'useful', found, mend };
}

export function needed(found: string, mend: string): CheckUp {
  return { state: 'needed', found, mend };
}

export const GIB = 1024 ** 3;

export function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
