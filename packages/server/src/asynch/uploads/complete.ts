import type { CompleteBody } from '@undertone/contract';
import { ProblemError } from '../../problems.ts';
import type { AsynchRequest, Part, RequestStore } from '../stores/request-store.ts';

/** More numbers than this make a sentence nobody reads; the lists beside it are whole. */
const NUMBERS_IN_SENTENCE = 10;

/** uploading -> queued. Names the parts that are missing or wrong, and then leaves the upload open. */
export async function completeUpload(
  requests: RequestStore,
  request: AsynchRequest,
  named: CompleteBody['parts'],
): Promise<void> {
  const etags = new Map(named.map(({ PartNumber, ETag }) => [PartNumber, plainEtag(ETag)]));
  const contradictory = named
    .filter(({ PartNumber, ETag }) => etags.get(PartNumber) !== plainEtag(ETag))
    .map(({ PartNumber }) => PartNumber);
  if (contradictory.length === 0 && (await requests.queue(request.id, etags))) return;
  const now = await requests.find(request.id);
  // Somebody else completed it at the same moment, or its time was over.
  if (now?.state !== 'uploading') return;
  throw explain(request.partCount, etags, await requests.parts(request.id), contradictory);
}

function explain(
  partCount: number,
  etags: ReadonlyMap<number, string>,
  parts: readonly Part[],
  contradictory: readonly number[],
): ProblemError {
  const arrived = new Map(parts.map(({ number, etag }) => [number, etag]));
  const wanted = Array.from({ length: partCount }, (_, i) => i + 1);
  const missing = wanted.filter((number) => !arrived.has(number));
  const wrong = [
    ...wanted.filter((number) => arrived.has(number) && arrived.get(number) !== etags.get(number)),
    ...[...etags.keys()].filter((number) => number > partCount),
    ...contradictory,
  ];
  const wrong_parts = [...new Set(wrong)].sort((a, b) => a - b);
  const sentences = [
    missing.length > 0 ? `Never arrived: ${listed(missing)}.` : '',
    wrong_parts.length > 0
      ? `Not named, or with another ETag than they arrived with: ${listed(wrong_parts)}.`
      : '',
    `Send or name these of the ${partCount} parts and complete again; the upload stays open.`,
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

/** Some HTTP libraries strip the quotes, some proxies mark an ETag as weak. */
function plainEtag(etag: string): string {
  return etag.replace(/^W\//, '').replaceAll('"', '').trim().toLowerCase();
}
