import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller, KeyLookup, KeyStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';

interface AuthenticatorOptions {
  readonly keys: KeyStore;
  /** The key of SERVICE_API_KEY; empty when there is none. */
  readonly environmentKey: string;
  readonly logger: FastifyBaseLogger;
  readonly now?: () => number;
}

interface Known {
  readonly caller: Caller | null;
  readonly lookedUpAt: number;
}

/** A key is looked up again after this long, so that a revoked one is refused soon. */
const FRESH_MS = 1_000;
const NOTE_USES_EVERY_MS = 60_000;
/** Wrong keys come in any number; the ones longest unused are forgotten. */
const MAX_KNOWN = 10_000;

/**
 * Who calls? Answers are remembered: for a second without looking again, and for as long as the store is away. Nothing
 * that has to be written is written while anybody waits.
 */
export class Authenticator {
  readonly #keys: KeyStore;
  readonly #environmentHash: Buffer | null;
  readonly #logger: FastifyBaseLogger;
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #uses = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor({ keys, environmentKey, logger, now = Date.now }: AuthenticatorOptions) {
    this.#keys = keys;
    this.#environmentHash = environmentKey === '' ? null : hashOf(environmentKey);
    this.#logger = logger;
    this.#now = now;
    this.#timer = setInterval(() => void this.noteUses(), NOTE_USES_EVERY_MS).unref();
  }

  /** Null when the key is unknown, expired or revoked. Rejects with StoreUnavailableError when nobody can tell. */
  async authenticate(key: string): Promise<Caller | null> {
    const hash = hashOf(key);
    const name = hash.toString('base64');
    const known = this.#known.get(name);
    if (known !== undefined && this.#now() - known.lookedUpAt < FRESH_MS) return this.#used(known.caller);
    let lookup: KeyLookup;
    try {
      lookup = await this.#keys.lookUp(key);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || !known?.caller) throw error;
      return this.#used(known.caller);
    }
    const caller = this.#callerOf(lookup, hash);
    this.#known.delete(name); // last in the map: the first is the one longest not looked up
    this.#known.set(name, { caller, lookedUpAt: this.#now() });
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value ?? name);
    return this.#used(caller);
  }

  /** A store that cannot be written now gets the uses the next time. */
  async noteUses(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = new Map(this.#uses);
    this.#uses.clear();
    try {
      await this.#keys.recordLastUsed(uses);
    } catch (error) {
      for (const [id, at] of uses) if (!this.#uses.has(id)) this.#uses.set(id, at);
      this.#logger.warn({ err: error }, 'the last uses of keys could not be stored; trying again later');
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.noteUses();
  }

  /** The key in the environment is the stored key of the same text, where there is one: same owner, same end. */
  #callerOf(lookup: KeyLookup, hash: Buffer): Caller | null {
    if (lookup.state === 'active') return { id: lookup.id, name: lookup.name, logId: lookup.id };
    if (lookup.state !== 'unknown' || this.#environmentHash === null) return null;
    if (!timingSafeEqual(hash, this.#environmentHash)) return null;
    // The owner of its requests depends on the key, so that another key in the same variable does not own them.
    return { id: `env_${hash.toString('hex', 0, 6)}`, name: 'SERVICE_API_KEY', logId: 'env' };
  }

  #used(caller: Caller | null): Caller | null {
    if (caller !== null && caller.logId !== 'env') this.#uses.set(caller.id, this.#now());
    return caller;
  }
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
