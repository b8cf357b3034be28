import { type CompleteBody, plainEtag } from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { Part } from '../stores/contracts.ts';

/** Longer sentences are unreadable; the figures list all numbers. */
const NUMBERS_IN_SENTENCE = 10;

/** Why an upload cannot be completed: which parts are missing, and which have a wrong ETag or are not named. */
export function explainParts(
  partCount: number,
  named: CompleteBody['parts'],
  arrivedParts: readonly Part[],
): ProblemError {
  const arrived = new Map(arrivedParts.map(({ number, etag }) => [number, plainEtag(etag)]));
  const wanted = Array.from({ length: partCount }, (_, i) => i + 1);
  const missing = wanted.filter((number) => !arrived.has(number));
  const right = new Set(
    named
      .filter(({ PartNumber, ETag }) => arrived.get(PartNumber) === plainEtag(ETag))
      .map(({ PartNumber }) => PartNumber),
  );
  const wrong = [
    ...wanted.filter((number) => arrived.has(number) && !right.has(number)),
    ...named
      .filter(
        ({ PartNumber, ETag }) =>
          PartNumber > partCount || (right.has(PartNumber) && arrived.get(PartNumber) !== plainEtag(ETag)),
      )
      .map(({ PartNumber }) => PartNumber),
  ];
  const wrong_parts = [...new Set(wrong)].sort((a, b) => a - b);
  const sentences = [
    missing.length > 0 ? `Missing: ${listed(missing)}.` : '',
    wrong_parts.length > 0 ? `Not named, or named with a wrong ETag: ${listed(wrong_parts)}.` : '',
    `Send or name these parts (of ${partCount}) and complete again. The upload stays open.`,
  ];
  return new ProblemError('bad_request', sentences.filter(Boolean).join(' '), {
    figures: { missing_parts: missing, wrong_parts },
  });
}

function listed(numbers: readonly number[]): string {
  const shown = numbers.slice(0, NUMBERS_IN_SENTENCE).join(', ');
  const more = numbers.length - NUMBERS_IN_SENTENCE;
  return more > 0 ? `${shown} and ${more} more` : shown;
}
