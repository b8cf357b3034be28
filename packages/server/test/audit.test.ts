import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { wav } from '@undertone/testing/wav';
import { KeyEventLog } from '../src/audit.ts';
import { createLogger } from '../src/index.ts';

test('the audit log has one line for each change and refusal of a key and each deleted request', async () => {
  let text = '';
  const logger = createLogger('info', {
    write: (line) => {
      text += line;
    },
  });
  const SERVICE_API_KEY = 'key-from-environment';
  const service = await testApp({ SERVICE_API_KEY }, { logger });
  const { keys } = service.stores;
  await keys.takeEvents();
  const { key, record } = await keys.create('laptop', { owner: 'anna' });
  await keys.changeLimits(record.id, { rate: 60 });
  const ids = [];
  for (const by of [key, SERVICE_API_KEY]) {
    const client = await AsynchClient.of(service, by);
    const id = await client.upload(wav({ seconds: 5 }), 1);
    ids.push(id);
    for (let i = 0; i < 2; i++) assert.equal((await client.delete(id)).status, 204);
  }
  const { key: never } = await keys.create('never used');
  await keys.revoke('never used');
  for (const wrong of [never, 'some-other-secret']) {
    const headers = { [API_KEY_HEADER]: wrong };
    assert.equal((await service.app.inject({ url: PATHS.models, headers })).statusCode, 401);
  }
  const log = new KeyEventLog({ keys, logger });
  await log.run();
  await log.close();

  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ audit }) => audit === true)
    .map(({ event, key, owner, recording, limits }) => ({ event, key, owner, recording, limits }));
  const second = never.split('_')[1];
  const none = { recording: undefined, limits: undefined };
  const change = { recording: undefined, limits: {} };
  assert.deepEqual(lines, [
    { ...none, event: 'request.deleted', key: record.id, owner: 'anna', recording: ids[0] },
    { ...none, event: 'request.deleted', key: 'env', owner: 'env', recording: ids[1] },
    { ...none, event: 'key.refused', key: second, owner: undefined },
    { ...none, event: 'key.refused', key: undefined, owner: undefined },
    { ...change, event: 'key.created', key: record.id, owner: 'anna' },
    { ...change, event: 'key.limited', key: record.id, owner: 'anna', limits: { rate: 60 } },
    { ...change, event: 'key.created', key: second, owner: second },
    { ...change, event: 'key.revoked', key: second, owner: second },
  ]);
  for (const secret of [key, never, SERVICE_API_KEY, 'some-other-secret']) assert.ok(!text.includes(secret));
});
