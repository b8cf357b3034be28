import { StoreUnavailableError } from './errors.ts';

/** Called when a call to a store ends. */
export type Measure = (seconds: number, outcome: 'ok' | 'unavailable' | 'error') => void;

/** The same store, with every call measured except those whose duration the client decides. */
export function measured<T extends object>(
  store: T,
  measure: Measure,
  { except = [] }: { except?: readonly (keyof T)[] } = {},
): T {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (except.includes(name as keyof T)) return value.bind(target);
      return (...args: unknown[]) => {
        const start = performance.now();
        const result: unknown = value.apply(target, args);
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
