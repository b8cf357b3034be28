import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { postFile, postJson, testApp } from '@undertone/testing/app';
import { form } from '@undertone/testing/form';
import { wav } from '@undertone/testing/wav';
import { createLogger } from '../../src/index.ts';

test('the log has one line per response, and never a key, a query, a file name or audio', async () => {
  let text = '';
  const logger = createLogger('debug', {
    write: (line) => {
      text += line;
    },
  });
  const service = await testApp({ SERVICE_API_KEY: 'key-from-environment' }, { logger });
  const file = form({ name: 'file', fileName: 'private-name.wav', type: 'audio/wav', content: wav() });
  await postFile(service, '', { payload: file, headers: { 'x-request-id': 'known-id' } });
  await postFile(service, 'private-sound');
  await postJson(service, '{"payload": [[0.123456789, "private-sound"]]}');
  await service.app.inject({
    url: '/private-path?token=private-token',
    headers: { [API_KEY_HEADER]: 'wrong-key' },
  });
  await service.app.inject({
    url: `${PATHS.models}?x=private-token`,
    headers: { [API_KEY_HEADER]: 'key-from-environment' },
  });
  await service.app.inject({ url: '/%E0%A4%A?private-token' });
  service.stores.keys.lookUp = () => Promise.reject(new Error('the store is gone'));
  await postFile(service, wav(), { headers: { [API_KEY_HEADER]: 'another-key' } });

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  assert.deepEqual(
    answered.map(({ status }) => status),
    [200, 415, 400, 401, 200, 500],
  );
  assert.equal(answered[0].request_id, 'known-id');
  assert.equal(answered[0].route, PATHS.discrete);
  assert.ok(lines.some(({ err }) => err?.message === 'the store is gone'));
  for (const secret of [service.key, 'key-from-environment', 'wrong-key', 'private', '0.123456789']) {
    assert.ok(!text.includes(secret), secret);
  }
});
