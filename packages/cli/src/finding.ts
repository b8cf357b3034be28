/** What a check found and, unless it is ok, how to fix it. */
export interface Finding {
  readonly state: 'ok' | 'warning' | 'error';
  readonly found: string;
  readonly fix?: string;
}

export function ok(found: string): Finding {
  return { state: 'ok', found };
}

export function warning(found: string, fix: string): Finding {
  return { state: 'warning', found, fix };
}

export function error(found: string, fix: string): Finding {
  return { state: 'error', found, fix };
}
