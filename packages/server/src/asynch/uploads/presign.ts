import { createHmac, timingSafeEqual } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PATHS } from '@undertone/contract';
import { ProblemError } from '../../problems.ts';

export const PART_PATH = `${PATHS.asynch}/upload/:request_id/parts/:part_number`;

/** Signing ten thousand addresses at one go would hold the event loop too long. */
const SIGNED_AT_ONCE = 500;

export interface PartAddress {
  readonly requestId: string;
  readonly partNumber: number;
  /** Seconds since 1970. */
  readonly expires: number;
}

/**
 * Addresses that let whoever has them send one part of one request until a moment, and nothing else: all three are
 * signed. They need no key, so that a key need not travel to wherever the bytes come from.
 */
export class Presigner {
  readonly #secret: Buffer;
  readonly #now: () => number;

  constructor(secret: Buffer, now: () => number = Date.now) {
    this.#secret = secret;
    this.#now = now;
  }

  async addresses(baseUrl: string, requestId: string, partCount: number, expiresAt: number) {
    const expires = Math.floor(expiresAt / 1000);
    const list: { part_number: number; url: string }[] = [];
    for (let partNumber = 1; partNumber <= partCount; partNumber++) {
      const signature = this.#sign({ requestId, partNumber, expires }).toString('base64url');
      const path = PART_PATH.replace(':request_id', requestId).replace(':part_number', String(partNumber));
      list.push({
        part_number: partNumber,
        url: `${baseUrl}${path}?expires=${expires}&signature=${signature}`,
      });
      if (partNumber % SIGNED_AT_ONCE === 0) await nextTurn();
    }
    return list;
  }

  verify(address: PartAddress, signature: string): void {
    const given = Buffer.from(signature, 'base64url');
    const expected = this.#sign(address);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw new ProblemError(
        'forbidden',
        'The signature does not fit this address: use it exactly as it was given.',
      );
    }
    if (address.expires * 1000 <= this.#now()) {
      throw new ProblemError('forbidden', 'This address has expired: begin a new upload.');
    }
  }

  #sign({ requestId, partNumber, expires }: PartAddress): Buffer {
    return createHmac('sha256', this.#secret)
      .update(`PUT ${requestId.toLowerCase()} ${partNumber} ${expires}`)
      .digest();
  }
}
