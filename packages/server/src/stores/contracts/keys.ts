import type { TokenScope } from '@undertone/contract';
import type { KeyLimits, LimitChanges, NamedLimits } from '../key-limits.ts';

/** The key behind a call. */
export interface Caller {
  /** Of the key. */
  readonly id: string;
  /** Owner of what it uploads, shared by all keys with this owner. */
  readonly owner: string;
  /** Its own, or else those of the settings. */
  readonly limits: KeyLimits;
  readonly name: string;
  /** Safe to log: never derived from a secret. */
  readonly logId: string;
  /** Only for a call with a token. */
  readonly scope?: TokenScope;
}

export interface KeyRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  /** To the minute; null when the key was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly owner: string;
  /** Those that differ from the settings: its own, and its owner's. */
  readonly limits: NamedLimits;
}

export interface NewKey {
  readonly expiresAt?: Date | undefined;
  /** By default the key's id: it shares nothing with other keys. */
  readonly owner?: string | undefined;
  readonly limits?: NamedLimits | undefined;
}

export type ChangedKey = { readonly changed: KeyRecord } | { readonly why: 'unknown' | 'ambiguous' };

export type KeyLookup =
  | {
      readonly state: 'active';
      readonly id: string;
      readonly name: string;
      readonly owner: string;
      readonly limits: NamedLimits;
    }
  | { readonly state: 'revoked' | 'expired' | 'unknown' };

/** A change of a key, for the audit log. */
export interface KeyEvent {
  readonly change: 'created' | 'limited' | 'revoked';
  /** Its id. */
  readonly key: string;
  readonly name: string;
  readonly owner: string;
  readonly limits: NamedLimits;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** API keys. Only hashes are stored, so a key cannot be read back. */
export interface KeyStore {
  /** The command line, and the first start. The key is returned only here. */
  create(name: string, options?: NewKey): Promise<{ key: string; record: KeyRecord }>;
  /** Calls with a key that was not looked up recently. */
  lookUp(key: string): Promise<KeyLookup>;
  /** Calls with a token, which carries the id of its key. */
  lookUpId(id: string): Promise<KeyLookup>;
  /** The authenticator, once a minute: last use by key id, in milliseconds since 1970. */
  recordLastUsed(uses: ReadonlyMap<string, number>): Promise<void>;
  /** The command line. Newest first, revoked keys included. */
  list(): Promise<KeyRecord[]>;
  /** The command line. Limits of the owner change for all its keys. */
  changeLimits(idOrName: string, changes: LimitChanges): Promise<ChangedKey>;
  /**
   * The command line. The key is refused from its first transaction on. If it was its owner's last active key, the owner's
   * unfinished requests are deleted in batches afterwards, and so their upload URLs.
   */
  revoke(
    idOrName: string,
    options?: { batchRows?: number },
  ): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }>;
  /** The audit log: changes since the last call, of any process. Each is returned once. */
  takeEvents(): Promise<KeyEvent[]>;
  /** The first start: true when no key is active. */
  isEmpty(): Promise<boolean>;
}
