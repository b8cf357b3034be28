import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATHS } from '@undertone/contract';
import { postFile, readProblem, testApp } from '@undertone/testing/app';
import { hostileRequest } from '@undertone/testing/hostile';
import { Random } from '@undertone/testing/random';
import { sendHostile } from '@undertone/testing/send-hostile';
import { wav } from '@undertone/testing/wav';

const COUNT = 800;
const AT_ONCE = 8;

test(`${COUNT} damaged or hostile bodies: each gets a 200 or a 4xx, and nothing is left behind`, async () => {
  // A slow machine is not an overloaded one here.
  const service = await testApp({}, { admissionLimits: { maxWaitMs: 60_000 } });
  const { port } = await service.listen();
  const random = new Random(20_260);
  let turn = 0;
  const statuses = new Map<number, number>();

  async function work(): Promise<void> {
    while (turn < COUNT) {
      const request = hostileRequest(random, turn++);
      const answer = await sendHostile(port, service.key, request);
      if (answer === null) continue;
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const about = `${request.kind}: ${answer.status} ${answer.body}`;
      assert.ok(answer.status < 500, about);
      if (answer.status !== 200) {
        assert.equal(answer.contentType, 'application/problem+json', about);
        readProblem(answer, JSON.parse(answer.body).code);
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));

  // The bodies must have enough variety: some are harmless, and most error codes occur.
  for (const status of [200, 400, 413, 415, 422]) assert.ok(statuses.has(status), `no ${status}`);
  assert.equal((await postFile(service, wav())).statusCode, 200);
  let body = '';
  for (let tries = 0; !/^undertone_discrete_requests_in_flight 0$/m.test(body); tries++) {
    // Longer than the body timeout.
    assert.ok(tries < 1_000, 'a request is in flight for ever');
    await sleep(50);
    ({ body } = await service.app.inject({ url: PATHS.metrics }));
  }
  assert.match(body, /^undertone_inference_thread_restarts 0$/m);
});
