import { createHash, randomBytes } from 'node:crypto';

/** `ut_<id>_<secret>`: the id finds the record, so that the secret is only ever compared, never searched for. */
const FORMAT = /^ut_([0-9a-f]{12})_[\w-]{43}$/;

export function generateKey(): { id: string; key: string } {
  const id = randomBytes(6).toString('hex');
  return { id, key: `ut_${id}_${randomBytes(32).toString('base64url')}` };
}

export function keyId(key: string): string | undefined {
  return FORMAT.exec(key)?.[1];
}

/** Keys are 256 random bits, so a plain hash is as good as a slow one. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
