import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import type { Stores } from '@undertone/server';

/** One key after another: created, used, revoked. The one before must be refused by then. */
export class KeyTurns {
  readonly #url: string;
  readonly #keys: Stores['keys'];
  #turn = 0;
  #revoked: string | undefined;

  constructor(url: string, keys: Stores['keys']) {
    this.#url = url;
    this.#keys = keys;
  }

  get turns(): number {
    return this.#turn;
  }

  /** At least a minute after the last one. Returns what went wrong. */
  async next(): Promise<string | null> {
    if (this.#revoked !== undefined) {
      const status = await this.#use(this.#revoked);
      if (status !== 401) return `a key revoked a minute ago got ${status}`;
    }
    const { key, record } = await this.#keys.create(`key ${++this.#turn}`, { owner: 'short-lived' });
    const status = await this.#use(key);
    await this.#keys.revoke(record.id);
    this.#revoked = key;
    return status === 200 ? null : `a new key got ${status}`;
  }

  async #use(key: string): Promise<number> {
    const response = await fetch(this.#url + PATHS.models, { headers: { [API_KEY_HEADER]: key } });
    await response.text();
    return response.status;
  }
}
