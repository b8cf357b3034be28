import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { readProblem, testApp } from '@undertone/testing/app';
import { FORM_TYPE, fileForm } from '@undertone/testing/form';
import { head, RawClient } from '@undertone/testing/socket';
import { wav } from '@undertone/testing/wav';

const service = await testApp({ SERVICE_QUEUE_LIMIT: '2' });
const { port } = await service.listen();
const body = fileForm(wav());

function post(key: string, headers: Record<string, string | number> = {}): string {
  return head('POST', PATHS.discrete, {
    [API_KEY_HEADER]: key,
    'content-type': FORM_TYPE,
    'content-length': body.length,
    ...headers,
  });
}

describe('responses before the body is read', () => {
  test('a wrong key is refused before any byte of the body is sent', async () => {
    const client = new RawClient(port).send(post('wrong'));
    readProblem(await client.answer(), 'invalid_api_key');
    client.destroy();
  });

  test('the connection stays usable for a client that keeps sending', async () => {
    const client = new RawClient(port).send(post('wrong'));
    readProblem(await client.answer(), 'invalid_api_key');
    client.send(body).send(post(service.key)).send(body);
    assert.equal((await client.answer()).status, 200);
    client.destroy();
  });
});

describe('connections', () => {
  test('a keep-alive connection serves many recordings', async () => {
    const client = new RawClient(port);
    for (let i = 0; i < 3; i++) {
      client.send(post(service.key)).send(body);
      assert.equal((await client.answer()).status, 200);
    }
    client.destroy();
  });

  test('a body in tiny pieces and in chunks is read', async () => {
    const client = new RawClient(port);
    client.socket.setNoDelay(true);
    client.send(
      head('POST', PATHS.discrete, {
        [API_KEY_HEADER]: service.key,
        'content-type': FORM_TYPE,
        'transfer-encoding': 'chunked',
      }),
    );
    for (let at = 0; at < body.length; at += 997) {
      const piece = body.subarray(at, at + 997);
      client
        .send(`${piece.length.toString(16)}\r\n`)
        .send(piece)
        .send('\r\n');
    }
    client.send('0\r\n\r\n');
    assert.equal((await client.answer()).status, 200);
    client.destroy();
  });

  test('Expect: 100-continue is answered, an unknown expectation is ignored', async () => {
    const client = new RawClient(port).send(post(service.key, { expect: '100-continue' }));
    assert.equal((await client.answer()).status, 100);
    assert.equal((await client.send(body).answer()).status, 200);
    client.destroy();
    const odd = new RawClient(port).send(post(service.key, { expect: 'a-miracle' })).send(body);
    assert.equal((await odd.answer()).status, 200);
    odd.destroy();
  });

  test('hundreds of simultaneous requests are answered while some clients disconnect', async () => {
    const clients = Array.from({ length: 300 }, () =>
      new RawClient(port).send(head('GET', PATHS.health, {})),
    );
    await Promise.all(clients.map(({ socket }) => once(socket, 'connect')));
    const [impatient, patient] = [clients.splice(0, 100), clients];
    for (const { socket } of impatient) socket.resetAndDestroy();
    for (const client of patient) assert.equal((await client.answer()).status, 200);
    for (const client of patient) client.destroy();
  });

  test('clients that disconnect halfway free their slot', async () => {
    for (let round = 0; round < 3; round++) {
      const clients = Array.from({ length: 3 }, () =>
        new RawClient(port).send(post(service.key)).send(body.subarray(0, 50_000)),
      );
      await sleep(50);
      for (const client of clients) client.destroy();
    }
    await untilNothingIsInFlight();
    const client = new RawClient(port).send(post(service.key)).send(body);
    assert.equal((await client.answer()).status, 200);
    client.destroy();
    await untilNothingIsInFlight();
  });

  test('disconnecting while queued cancels the work', async () => {
    const before = await audioSeconds();
    const clients = Array.from({ length: 3 }, () => new RawClient(port).send(post(service.key)).send(body));
    // Long enough to read all three, too short to classify them one after another.
    await sleep(40);
    for (const client of clients) client.destroy();
    await sleep(300);
    assert.ok((await audioSeconds()) - before < 15);
  });
});

async function untilNothingIsInFlight(): Promise<void> {
  for (let tries = 0; (await metric(/^undertone_discrete_requests_in_flight (\S+)/m)) !== 0; tries++) {
    assert.ok(tries < 1_000, 'a place stays taken');
    await sleep(10);
  }
}

function audioSeconds(): Promise<number> {
  return metric(/undertone_audio_seconds_total\{interface="discrete"\} (\S+)/);
}

async function metric(line: RegExp): Promise<number> {
  const { body: metrics } = await service.app.inject({ url: PATHS.metrics });
  return Number(line.exec(metrics)?.[1] ?? 0);
}
