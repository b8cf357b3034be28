import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionFailedError, RequestFailedError } from '@undertone/sdk';
import { explain } from '../src/explain.ts';

const refused = (code: string, message: string, figures: object = {}) => {
  const problem = { code, title: '', type: '', status: 400, detail: message, request_id: '1', ...figures };
  return new RequestFailedError(message, { code: code as 'internal', problem });
};

test('a server that is gone is named, and can be tried again', () => {
  const error = new ConnectionFailedError('Failed to fetch (after 5 retries)', { code: 'connection_failed' });
  assert.deepEqual(explain(error), {
    text: 'The server does not answer. Is it still running?',
    canRetry: true,
  });
});

test('errors speak of files, not of paths of the API', () => {
  const short = refused('audio_too_short', 'send 5 s and more to POST /v1/asynch', { actual_seconds: 2.5 });
  assert.equal(explain(short).text, 'This file is 2.5 s long. A recording needs at least 4 seconds.');
  const unreadable = refused('unreadable_audio', 'This WAV file cannot be read: no chunks. Save it as WAV.');
  assert.equal(explain(unreadable).text, 'This is not an audio file we can read. Try converting it to WAV.');
  assert.equal(explain(unreadable).canRetry, false);
});

test('an unknown error keeps its words', () => {
  assert.equal(explain(new Error('No disk')).text, 'No disk');
  assert.equal(explain(refused('bad_request', 'label is too long')).text, 'label is too long');
});
