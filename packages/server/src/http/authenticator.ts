import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller, KeyLookup, KeyStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { KeyLimits } from '../stores/key-limits.ts';

interface AuthenticatorOptions {
  readonly keys: KeyStore;
  /** From SERVICE_API_KEY; empty if unset. */
  readonly environmentKey: string;
  /** For what a key does not name. */
  readonly defaultLimits: KeyLimits;
  readonly logger: FastifyBaseLogger;
  /** A clock that is never set: otherwise a step back would keep revoked keys in the cache. */
  readonly monotonicMs?: () => number;
}

interface CachedLookup {
  readonly caller: Caller | null;
  readonly lookedUpAt: number;
  /** The store did not answer the last lookup: nobody waits for the next one. */
  readonly unanswered?: boolean;
}

/** How long a lookup is cached. A revoked key is refused after this. */
const FRESH_MS = 1_000;
const RECORD_USES_EVERY_MS = 60_000;
/** Bounds the cache: anybody can send wrong keys. */
const MAX_CACHED = 10_000;

/**
 * Finds the caller of a key. Lookups are cached: for a second, and for as long as the store is unavailable. Meanwhile one is
 * tried every second without keeping anybody waiting. Last-used times are written in the background.
 */
export class Authenticator {
  readonly #keys: KeyStore;
  readonly #environmentHash: Buffer | null;
  readonly #defaultLimits: KeyLimits;
  readonly #logger: FastifyBaseLogger;
  readonly #monotonicMs: () => number;
  readonly #cache = new Map<string, CachedLookup>();
  readonly #uses = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor({
    keys,
    environmentKey,
    defaultLimits,
    logger,
    monotonicMs = () => performance.now(),
  }: AuthenticatorOptions) {
    this.#keys = keys;
    this.#defaultLimits = defaultLimits;
    this.#environmentHash = environmentKey === '' ? null : hashOf(environmentKey);
    this.#logger = logger;
    this.#monotonicMs = monotonicMs;
    this.#timer = setInterval(() => void this.recordLastUsed(), RECORD_USES_EVERY_MS).unref();
  }

  /** Null if the key is unknown, expired or revoked. Rejects with StoreUnavailableError if that cannot be checked. */
  authenticate(key: string): Promise<Caller | null> {
    const hash = hashOf(key);
    return this.#cached(hash.toString('base64'), async () =>
      this.#callerOf(await this.#keys.lookUp(key), hash),
    );
  }

  /** The same for a token, which carries the id of its key instead of the key. */
  async authenticateId(id: string): Promise<Caller | null> {
    const environment = this.#environmentHash && this.#environmentCaller(this.#environmentHash);
    if (environment?.id === id) return environment;
    return this.#cached(`id ${id}`, async () => this.#callerOf(await this.#keys.lookUpId(id), null));
  }

  isEnvironmentOwner(owner: string): boolean {
    return this.#environmentHash !== null && this.#environmentCaller(this.#environmentHash).owner === owner;
  }

  /** True if some key would be accepted while the store is unavailable. */
  get knowsCallers(): boolean {
    return [...this.#cache.values()].some(({ caller }) => caller !== null);
  }

  async #cached(name: string, lookUp: () => Promise<Caller | null>): Promise<Caller | null> {
    const cached = this.#cache.get(name);
    if (cached !== undefined && this.#monotonicMs() - cached.lookedUpAt < FRESH_MS)
      return this.#used(cached.caller);
    const looking = lookUp().then((caller) => this.#remember(name, { caller }));
    if (!cached?.caller) return this.#used(await looking);
    const { caller } = cached;
    const known = looking.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error;
      // Another lookup may have been answered meanwhile.
      const latest = this.#cache.get(name) ?? cached;
      return latest === cached ? this.#remember(name, { caller, unanswered: true }) : latest.caller;
    });
    if (!cached.unanswered) return this.#used(await known);
    this.#remember(name, { caller, unanswered: true });
    known.catch((err: unknown) => this.#logger.error({ err }, 'a key could not be looked up'));
    return this.#used(caller);
  }

  #remember(name: string, lookup: Omit<CachedLookup, 'lookedUpAt'>): Caller | null {
    this.#cache.delete(name); // moves it to the end of the map: the first entry is the oldest
    this.#cache.set(name, { ...lookup, lookedUpAt: this.#monotonicMs() });
    if (this.#cache.size > MAX_CACHED) this.#cache.delete(this.#cache.keys().next().value ?? name);
    return lookup.caller;
  }

  /** If the store is unavailable, the next run writes them. */
  async recordLastUsed(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = new Map(this.#uses);
    this.#uses.clear();
    try {
      await this.#keys.recordLastUsed(uses);
    } catch (error) {
      for (const [id, at] of uses) if (!this.#uses.has(id)) this.#uses.set(id, at);
      this.#logger.warn({ err: error }, 'could not record when keys were last used; will retry');
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.recordLastUsed();
  }

  /** If SERVICE_API_KEY is also a stored key, it is that key: same owner, same expiry. */
  #callerOf(lookup: KeyLookup, hash: Buffer | null): Caller | null {
    if (lookup.state === 'active') {
      const { id, name, owner } = lookup;
      return { id, name, owner, logId: id, limits: { ...this.#defaultLimits, ...lookup.limits } };
    }
    if (lookup.state !== 'unknown' || hash === null || this.#environmentHash === null) return null;
    return timingSafeEqual(hash, this.#environmentHash) ? this.#environmentCaller(hash) : null;
  }

  /** The owner is derived from the key: another key in the same variable does not own its requests. */
  #environmentCaller(hash: Buffer): Caller {
    const id = `env_${hash.toString('hex', 0, 6)}`;
    return { id, name: 'SERVICE_API_KEY', owner: id, logId: 'env', limits: this.#defaultLimits };
  }

  #used(caller: Caller | null): Caller | null {
    if (caller !== null && caller.logId !== 'env') this.#uses.set(caller.id, Date.now());
    return caller;
  }
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
