import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { ASYNCH_LIMITS, formatTimestamp, parseTimestamp } from '@undertone/contract';
import fc from 'fast-check';
import { planParts } from '../src/asynch/open.ts';
import { NUMBERS } from '../src/config.ts';
import { PortableMd5 } from '../src/platform/md5.ts';
import { barLine } from '../src/progress.ts';
import { BACKOFF, parseRetryAfter, retryDelay } from '../src/retry.ts';
import { joinUrl } from '../src/urls.ts';

const SEED = 20_262;

test('parts cover the file exactly once, in order, within the limits of size and number', () => {
  const { min, max } = NUMBERS.partSize;
  const size = fc.integer({ min: 1, max: ASYNCH_LIMITS.maxFileBytes });
  const partSize = fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
  fc.assert(
    fc.property(size, partSize, (bytes, each) => {
      const parts = planParts(bytes, each);
      assert(parts.length <= ASYNCH_LIMITS.maxParts);
      let covered = 0;
      parts.forEach((part, index) => {
        assert.equal(part.number, index + 1);
        assert.equal(part.start, covered);
        assert(index === parts.length - 1 ? part.end - part.start <= each : part.end - part.start === each);
        assert(part.end > part.start);
        covered = part.end;
      });
      assert.equal(covered, bytes);
    }),
    { seed: SEED },
  );
});

test('delays grow, stay within jitter and maximum, and are never shorter than Retry-After', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.nat(100), random, fc.nat(60), (retry, chance, retryAfter) => {
      const delay = retryDelay(retry, chance);
      const ceiling = Math.min(BACKOFF.longestMs, BACKOFF.firstMs * 2 ** retry);
      assert(delay >= ceiling / 2 && delay <= ceiling);
      assert(retryDelay(retry + 1, 0) >= delay / 2);
      const asked = retryDelay(retry, chance, retryAfter);
      assert(asked >= retryAfter * 1000 && asked <= Math.max(ceiling, retryAfter * 1200 + 1));
      // Clients that were refused together do not come back together.
      if (chance > 0.01 && retryAfter > 10) assert(asked > retryAfter * 1000);
    }),
    { seed: SEED },
  );
});

test('any Retry-After header parses to a number of seconds or undefined', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
      ),
      (header) => {
        const seconds = parseRetryAfter(header, Date.now());
        assert(seconds === undefined || (seconds >= 0 && !Number.isNaN(seconds)));
      },
    ),
    { seed: SEED },
  );
});

test('the portable MD5 equals the native one for any chunks', () => {
  const bytes = fc.uint8Array({ maxLength: 400 });
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 6 }), (pieces) => {
      const portable = new PortableMd5();
      const native = createHash('md5');
      for (const piece of pieces) {
        portable.update(piece);
        native.update(piece);
      }
      assert.equal(portable.hex(), native.digest('hex'));
    }),
    { seed: SEED, numRuns: 500 },
  );
});

test('timestamps parse back to their seconds', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), (seconds) => {
      assert.equal(parseTimestamp(formatTimestamp(seconds)), seconds);
    }),
    { seed: SEED },
  );
});

test('query values of any kind survive a URL', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(5), (value, slashes) => {
      const url = new URL(joinUrl(`http://host/v1/asynch${'/'.repeat(slashes)}`, '/prediction', { value }));
      assert.equal(url.pathname, '/v1/asynch/prediction');
      assert.equal(url.searchParams.get('value'), value.toWellFormed());
    }),
    { seed: SEED },
  );
});

test('the bar fits on one line of any terminal', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(share, fc.nat(300), fc.nat(2 ** 30), fc.boolean(), (progress, columns, totalBytes, sized) => {
      const size = sized ? { sentBytes: Math.floor(progress * totalBytes), totalBytes } : {};
      const line = barLine({ status: 'uploading', progress, ...size }, 12.3, columns);
      assert(line.length <= Math.max(0, columns - 1), `${line.length} of ${columns}`);
    }),
    { seed: SEED },
  );
});
