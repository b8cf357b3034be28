import { timingSafeEqual } from 'node:crypto';
import { hashKey } from './key-format.ts';
import type { Caller } from './key-store.ts';

/** The key of SERVICE_API_KEY: never stored, held as a hash, its id the same after every start. */
export class EnvironmentKey {
  readonly #hash: Buffer;
  readonly #caller: Caller;

  constructor(key: string) {
    this.#hash = hashKey(key);
    this.#caller = { id: `env_${this.#hash.toString('hex', 0, 6)}`, name: 'SERVICE_API_KEY' };
  }

  verify(key: string): Caller | null {
    return timingSafeEqual(hashKey(key), this.#hash) ? this.#caller : null;
  }
}
