/** Whom a request belongs to. */
export interface Caller {
  /** The owner of what it uploads. */
  readonly id: string;
  readonly name: string;
  /** What a log line calls it: never anything computed from a secret. */
  readonly logId: string;
}

export interface KeyRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  /** To the minute; null when the key was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

/** What is known of a key: one that was revoked or has expired is not the same as one that never was. */
export type KeyLookup =
  | { readonly state: 'active'; readonly id: string; readonly name: string }
  | { readonly state: 'revoked' | 'expired' | 'unknown' };

/** Where API keys live. Only hashes are stored: nobody can read a key back. */
export interface KeyStore {
  /** The command line, and the first start. The key is returned this once. */
  create(name: string, options?: { expiresAt?: Date }): Promise<{ key: string; record: KeyRecord }>;
  /** Requests with a key that was not looked up lately. */
  lookUp(key: string): Promise<KeyLookup>;
  /** Now and then: when keys were used last. */
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>;
  /** The command line. Newest first, revoked ones too. */
  list(): Promise<KeyRecord[]>;
  /**
   * The command line, by id or, where that is clear, by name. Ends the unfinished requests of the key with it, in the
   * same transaction, and so its upload URLs.
   */
  revoke(idOrName: string): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }>;
  /** The first start: is there no active key? */
  isEmpty(): Promise<boolean>;
}
