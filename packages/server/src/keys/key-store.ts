/** Whom a request belongs to. */
export interface Caller {
  readonly id: string;
  readonly name: string;
}

export interface KeyRecord extends Caller {
  readonly createdAt: Date;
  /** To the minute; null when the key was never used. */
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

/** Where API keys live. Only hashes are stored: nobody can read a key back. */
export interface KeyStore {
  /** The command line, and the first start. The key is returned this once. */
  create(name: string): Promise<{ key: string; record: KeyRecord }>;
  /** Every request. Null when the key is unknown or revoked. */
  verify(key: string): Promise<Caller | null>;
  /** The command line. Newest first, revoked ones too. */
  list(): Promise<KeyRecord[]>;
  /** The command line. False when no key that still holds has this id. */
  revoke(id: string): Promise<boolean>;
  /** The first start: is there any key that still holds? */
  isEmpty(): Promise<boolean>;
  /** `/readyz`. Rejects when nothing can be written. */
  checkWritable(): Promise<void>;
  close(): Promise<void>;
}
