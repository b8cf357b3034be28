import { createHmac, timingSafeEqual } from 'node:crypto';
import type { TokenResult, TokenScope } from '@undertone/contract';
import type { Authenticator } from '../http/authenticator.ts';
import { ProblemError } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';

/** What a token says. */
interface Claims {
  readonly owner: string;
  readonly keyId: string;
  readonly scope: TokenScope;
  /** Seconds since 1970. */
  readonly expires: number;
}

interface TokensOptions {
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'authenticateId'>;
  readonly secret: Buffer;
  readonly now?: () => number;
}

/** `utt_<claims>.<signature>`, both base64url: allowed in a header and in the name of a WebSocket subprotocol. */
const FORMAT = /^(utt_[\w-]+)\.([\w-]+)$/;

/**
 * Tokens go where keys go. Signature, scope and expiry are checked without the store; the key behind a token is looked up by
 * its id, in the cache of the authenticator, so that a token is refused when its key is revoked or has expired.
 */
export class Tokens {
  readonly #authenticator: TokensOptions['authenticator'];
  readonly #secret: Buffer;
  readonly #now: () => number;

  constructor({ authenticator, secret, now = Date.now }: TokensOptions) {
    this.#authenticator = authenticator;
    this.#secret = secret;
    this.#now = now;
  }

  issue(caller: Caller, { scope, seconds }: { scope: TokenScope; seconds: number }): TokenResult {
    const expires = Math.floor(this.#now() / 1000) + seconds;
    const claims = [ownerOf(caller), caller.id, scope, expires];
    const text = `utt_${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
    const expires_at = new Date(expires * 1000).toISOString();
    return { token: `${text}.${this.#sign(text)}`, expires_at, scope };
  }

  /** The caller of a key or a token. Null if either is unknown or its key is revoked or expired. */
  async authenticate(credential: string): Promise<Caller | null> {
    const claims = this.#read(credential);
    // Not counted as a wrong key: it was a right one.
    if (claims !== null && claims.expires * 1000 <= this.#now())
      throw new ProblemError('invalid_api_key', 'This token has expired. Get a new one.');
    return this.#callerOf(credential, claims);
  }

  /** For open streams: they end when the key is revoked or expires, not when the token does. */
  recheck(credential: string): Promise<Caller | null> {
    return this.#callerOf(credential, this.#read(credential));
  }

  async #callerOf(credential: string, claims: Claims | null): Promise<Caller | null> {
    if (claims === null) return this.#authenticator.authenticate(credential);
    const caller = await this.#authenticator.authenticateId(claims.keyId);
    return caller !== null && ownerOf(caller) === claims.owner ? { ...caller, scope: claims.scope } : null;
  }

  /** Null if this is not a token of this service, so that it may be a key. */
  #read(credential: string): Claims | null {
    const [, text = '', signature = ''] = FORMAT.exec(credential) ?? [];
    // The text of the signature is compared, not its bytes: base64url has several texts for the same bytes.
    const given = Buffer.from(signature);
    const expected = Buffer.from(this.#sign(text));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    const [owner, keyId, scope, expires] = JSON.parse(Buffer.from(text.slice(4), 'base64url').toString());
    return { owner, keyId, scope, expires };
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

function ownerOf({ owner }: Caller): string {
  return owner;
}
