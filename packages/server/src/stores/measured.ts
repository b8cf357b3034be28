import { StoreUnavailableError } from './errors.ts';

/** Called when a call to a store ends. */
export type Measure = (seconds: number, outcome: 'ok' | 'unavailable' | 'error') => void;

interface MeasuredOptions<T> {
  readonly measure: Measure;
  /** Runs each call, for example in a span. */
  readonly run?: ((method: string, call: () => Promise<unknown>) => Promise<unknown>) | undefined;
  /** Calls whose duration the client decides. */
  readonly except?: readonly (keyof T)[];
}

/** The same store, with its calls measured. */
export function measured<T extends object>(store: T, { measure, run, except = [] }: MeasuredOptions<T>): T {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (except.includes(name as keyof T)) return value.bind(target);
      return (...args: unknown[]) => {
        const start = performance.now();
        const call = () => value.apply(target, args);
        const result: unknown = run === undefined ? call() : run(String(name), call);
        if (!(result instanceof Promise)) return result;
        const end = (outcome: Parameters<Measure>[1]) => measure((performance.now() - start) / 1000, outcome);
        result.then(
          () => end('ok'),
          (error: unknown) => end(error instanceof StoreUnavailableError ? 'unavailable' : 'error'),
        );
        return result;
      };
    },
  });
}
