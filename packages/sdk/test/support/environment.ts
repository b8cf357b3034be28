const NAMES = [
  'SERVICE_API_KEY',
  'SERVICE_URL',
  'SERVICE_DISCRETE_URL',
  'SERVICE_ASYNCH_URL',
  'SERVICE_LOG_LEVEL',
] as const;

type Variables = Partial<Record<(typeof NAMES)[number], string>>;

/** Runs a function with exactly these SERVICE_ variables, then restores the previous ones. */
export async function withEnvironment<T>(variables: Variables, run: () => Promise<T>): Promise<T> {
  const before = NAMES.map((name) => [name, process.env[name]] as const);
  set(NAMES.map((name) => [name, variables[name]] as const));
  try {
    return await run();
  } finally {
    set(before);
  }
}

function set(values: readonly (readonly [string, string | undefined])[]): void {
  for (const [name, value] of values) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}
