import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readCatalog } from '@undertone/classifier';
import {
  ADVISED_MIN_CONFIDENCE,
  ASYNCH_LIMITS,
  DISCRETE_LIMITS,
  INTERVAL_SECONDS,
  SAMPLE_RATE,
  STREAM_LIMITS,
  TOKEN_SECONDS,
  WEBHOOK_RETRY_SECONDS,
} from '@undertone/contract';
import { DOCUMENTS, readDocument } from '@undertone/testing/documents';
import { WEBHOOK_SECRET } from '../src/recordings/describe.ts';

const EVERYWHERE = [
  ...DOCUMENTS,
  'packages/sdk/README.md',
  'packages/cli/README.md',
  'clients/python/README.md',
];
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];

/** The text of a document on one line, as a reader sees it. */
function read(document: string): string {
  return readDocument(document).replaceAll(/\s+/g, ' ');
}

function says(document: string, words: string): void {
  assert.ok(read(document).includes(words), `${document} should say: ${words}`);
}

const gib = `${ASYNCH_LIMITS.maxFileBytes / 2 ** 30} GiB`;
const hours = `${ASYNCH_LIMITS.retentionSeconds / 3600} hours`;
const { minSeconds, maxSeconds } = DISCRETE_LIMITS;

describe('the numbers in the documents are those of the code', () => {
  test('the size and the length of recordings', () => {
    for (const document of ['README.md', 'docs/LONG_RECORDINGS.md', 'docs/OPERATIONS.md'])
      says(document, gib);
    for (const document of ['packages/sdk/README.md', 'clients/python/README.md'])
      says(document, `${ASYNCH_LIMITS.minSeconds} seconds to ${gib}`);
    says('README.md', `${minSeconds} to ${maxSeconds} seconds long`);
    says('README.md', `from ${SAMPLE_RATE.min / 1000} to ${SAMPLE_RATE.max / 1000} kHz`);
    const days = `${ASYNCH_LIMITS.minSeconds} seconds to ${ASYNCH_LIMITS.maxSeconds / 3600} hours, up to ${gib}`;
    says('docs/LONG_RECORDINGS.md', days);
    says('docs/ARCHITECTURE.md', `${ASYNCH_LIMITS.maxElements.toLocaleString('en')} elements`);
  });

  test('one name for one size', () => {
    for (const document of EVERYWHERE.filter((name) => name !== 'docs/COMPARISON.md')) {
      assert.doesNotMatch(read(document), /\b(1 GB|1024 MiB|1,024 MiB)\b/, document);
    }
  });

  test('the retries of webhooks', () => {
    const inWords = WEBHOOK_RETRY_SECONDS.map((seconds) =>
      seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`,
    );
    const list = `${inWords.slice(0, -1).join(', ')} and ${inWords.at(-1)}`;
    const times = `${NUMBERS[WEBHOOK_RETRY_SECONDS.length]} times`;
    const all = WEBHOOK_RETRY_SECONDS.reduce((sum, seconds) => sum + seconds, 0) / 3600;
    says('docs/LONG_RECORDINGS.md', `${times}, after ${list}`);
    says('docs/OPERATIONS.md', `retried ${times} within ${Math.ceil(all)} hours`);
    says('docs/ARCHITECTURE.md', `up to ${times}`);
    says('examples/telephone/README.md', `for ${Math.floor(all)} hours`);
    assert.ok(String(WEBHOOK_SECRET.schema.description).includes(`after ${list}`));
  });

  test('retention, tokens, intervals and streams', () => {
    for (const document of ['docs/PRIVACY.md', 'docs/MIGRATING.md', 'clients/python/README.md'])
      says(document, hours);
    says('docs/OPERATIONS.md', `${TOKEN_SECONDS.min} to ${TOKEN_SECONDS.max.toLocaleString('en')} seconds`);
    says('docs/LONG_RECORDINGS.md', `an emotion for every ${INTERVAL_SECONDS.default} seconds`);
    says('docs/LONG_RECORDINGS.md', `${INTERVAL_SECONDS.min} to ${INTERVAL_SECONDS.max}`);
    says('docs/OPERATIONS.md', `silent for ${STREAM_LIMITS.idleSeconds} s`);
    says('README.md', `under ${ADVISED_MIN_CONFIDENCE}`);
  });

  test('a revoked key is refused within a minute, in the same words everywhere', () => {
    for (const document of EVERYWHERE) {
      assert.doesNotMatch(read(document), /revoked[^.]{0,60}(within seconds|at once)/, document);
    }
    says('docs/OPERATIONS.md', 'refuses a revoked key within a minute');
  });

  test("the README's accuracy is that of the catalogue and the model card", async () => {
    const { weights } = await readCatalog();
    const figures = weights['research']?.figures['4emotions'];
    assert.ok(figures);
    const { meld, ...others } = figures.never_heard;
    const best = Math.max(...Object.values(others));
    says('README.md', `right in ${Math.round(100 * figures.accuracy)} of 100 windows of 5 s`);
    says('README.md', `${meld?.toFixed(2)} (conversation) to ${best.toFixed(2)} (acted English)`);
    assert.equal(best, others['cremad'], 'the best corpus is CREMA-D, which is acted English');
    const uar = figures.uar.toFixed(2);
    says(
      'docs/MODEL_CARD.md',
      `| \`research\` | 4emotions | 1675 | ${uar} | ${figures.accuracy.toFixed(2)} |`,
    );
  });
});
