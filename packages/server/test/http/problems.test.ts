import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Classifier } from '@undertone/classifier';
import { API_KEY_HEADER, ERROR_CODES, type ErrorCode, PATHS } from '@undertone/contract';
import { postFile, postJson, readProblem as read, testApp } from '@undertone/testing/app';
import { FORM_TYPE, fileForm, form } from '@undertone/testing/form';
import { TEST_MODELS } from '@undertone/testing/paths';
import { head, RawClient } from '@undertone/testing/socket';
import { samplesOf, wav, wavHeader } from '@undertone/testing/wav';

const service = await testApp();
const reached = new Set<ErrorCode>();

const readProblem: typeof read = (response, code) => {
  reached.add(code);
  return read(response, code);
};

const json = (samples: unknown) => JSON.stringify({ payload: samples });

describe('the key', () => {
  test('missing: 401 that names the header', async () => {
    const response = await service.app.inject({ method: 'GET', url: PATHS.models });
    assert.match(readProblem(response, 'missing_api_key').detail, /x-api-key/);
    assert.match(String(response.headers['www-authenticate']), /x-api-key/);
  });

  test('wrong, nearly right, revoked or malformed: 401', async () => {
    const revoked = await service.stores.keys.create('soon gone');
    await service.stores.keys.revoke(revoked.record.id);
    const oneOff = service.key.slice(0, -1) + (service.key.endsWith('A') ? 'B' : 'A');
    for (const key of ['nonsense', oneOff, revoked.key, `${service.key} `.repeat(2), 'ut__', 'ü']) {
      const headers = { [API_KEY_HEADER]: key };
      readProblem(await service.app.inject({ url: PATHS.models, headers }), 'invalid_api_key');
    }
  });
});

describe('the address', () => {
  const headers = { [API_KEY_HEADER]: service.key };

  test('unknown: 404', async () => {
    for (const url of ['/nothing', '/v1', '/v1/discrete/emotions', '/favicon.ico', '/v1/models/4emotions']) {
      readProblem(await service.app.inject({ url, headers }), 'not_found');
    }
  });

  test('known, with another method: 405 that names the right one', async () => {
    const response = await service.app.inject({ method: 'GET', url: PATHS.discrete, headers });
    assert.match(readProblem(response, 'method_not_allowed').detail, /POST/);
    assert.equal(response.headers.allow, 'POST');
    const onHealth = await service.app.inject({ method: 'DELETE', url: PATHS.health });
    readProblem(onHealth, 'method_not_allowed');
  });

  test('not decodable: 400', async () => {
    readProblem(await service.app.inject({ url: '/%E0%A4%A', headers }), 'bad_request');
  });

  test('with an unknown model: 400 that lists the known ones', async () => {
    for (const query of ['model=9emotions', 'model=', 'model=4emotions&model=5emotions', 'model=__proto__']) {
      const response = await postFile(service, wav(), { url: `${PATHS.discrete}?${query}` });
      const problem = readProblem(response, 'unknown_model');
      assert.match(problem.detail, /4emotions, 5emotions, 7emotions/);
    }
  });
});

describe('the form', () => {
  test('without a part named file: 400 that says how to send one', async () => {
    const payload = form({ name: 'audio', fileName: 'a.wav', type: 'audio/wav', content: wav() });
    for (const body of [payload, form(), form({ name: 'note', content: 'hello' })]) {
      assert.match(
        readProblem(await postFile(service, '', { payload: body }), 'missing_file').detail,
        /file=@/,
      );
    }
  });

  test('with the path instead of the file: 400 that mentions the missing @', async () => {
    const payload = form({ name: 'file', content: 'voice.wav' });
    assert.match(readProblem(await postFile(service, '', { payload }), 'missing_file').detail, /@/);
  });

  test('truncated, without a boundary or not a form: 400', async () => {
    const whole = fileForm(wav());
    readProblem(await postFile(service, '', { payload: whole.subarray(0, 100_000) }), 'bad_request');
    readProblem(await postFile(service, '', { payload: 'no form' }), 'bad_request');
    const headers = { 'content-type': 'multipart/form-data' };
    readProblem(await postFile(service, wav(), { headers }), 'bad_request');
  });

  test('with a file over the size limit: 413 with the limit, with or without Content-Length', async () => {
    const { port } = await service.listen();
    const announced = new RawClient(port).send(
      head('POST', PATHS.discrete, {
        [API_KEY_HEADER]: service.key,
        'content-type': FORM_TYPE,
        'content-length': 4 * 2 ** 30,
      }),
    );
    const problem = readProblem(await announced.answer(), 'file_too_large');
    assert.equal(problem.max_bytes, 32 * 2 ** 20 + 64 * 2 ** 10);
    announced.destroy();

    const chunked = new RawClient(port).send(
      head('POST', PATHS.discrete, {
        [API_KEY_HEADER]: service.key,
        'content-type': FORM_TYPE,
        'transfer-encoding': 'chunked',
      }),
    );
    const note = form({ name: 'note', content: Buffer.alloc(33 * 2 ** 20) });
    chunked
      .send(`${note.length.toString(16)}\r\n`)
      .send(note)
      .send('\r\n0\r\n\r\n');
    readProblem(await chunked.answer(), 'file_too_large');
    chunked.destroy();
  });
});

describe('the format', () => {
  test('a bare recording as the body: 415 that says how to send it', async () => {
    for (const type of ['audio/wav', 'application/octet-stream', 'text/plain']) {
      const response = await postFile(service, '', { payload: wav(), headers: { 'content-type': type } });
      assert.match(readProblem(response, 'unsupported_media_type').detail, /multipart\/form-data/);
    }
  });

  test('no body and no type: 415', async () => {
    const headers = { [API_KEY_HEADER]: service.key };
    const response = await service.app.inject({ method: 'POST', url: PATHS.discrete, headers });
    readProblem(response, 'unsupported_media_type');
  });

  test('a compressed body: 415', async () => {
    const response = await postFile(service, wav(), { headers: { 'content-encoding': 'gzip' } });
    assert.match(readProblem(response, 'unsupported_media_type').detail, /content-encoding/);
  });

  test('a file that is not WAV, without ffmpeg: 415 that names ffmpeg', async () => {
    const ogg = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(1000)]);
    assert.match(readProblem(await postFile(service, ogg), 'unsupported_media_type').detail, /ffmpeg/);
  });
});

describe('the recording', () => {
  test('too short: 400 with both lengths', async () => {
    const problem = readProblem(
      await postFile(service, wav({ seconds: 3.9, rate: 16_000 })),
      'audio_too_short',
    );
    assert.deepEqual([problem.min_seconds, problem.max_seconds, problem.actual_seconds], [4, 10, 3.9]);
  });

  test('too long: 400 with both lengths', async () => {
    const problem = readProblem(
      await postFile(service, wav({ seconds: 12, rate: 16_000 })),
      'audio_too_long',
    );
    assert.deepEqual([problem.max_seconds, problem.actual_seconds], [10, 12]);
    assert.match(problem.detail, /asynch/);
  });

  test('empty, truncated in its header, or damaged: 422', async () => {
    const damaged = wav().subarray(0, 2000);
    damaged.writeUInt16LE(0, 22);
    for (const file of [Buffer.alloc(0), wav().subarray(0, 30), damaged]) {
      readProblem(await postFile(service, file), 'unreadable_audio');
    }
  });

  test('with a sample rate outside the limits: 422 with the rates', async () => {
    const low = readProblem(await postFile(service, wav({ rate: 4_000 })), 'sample_rate_too_low');
    assert.equal(low.min_sample_rate, 8_000);
    assert.equal(low.actual_sample_rate, 4_000);
    const header = wavHeader({ rate: 384_000, channels: 1, bits: 16, dataBytes: 1000 });
    const response = await postFile(service, Buffer.concat([header, Buffer.alloc(1000)]));
    const high = readProblem(response, 'sample_rate_too_high');
    assert.equal(high.max_sample_rate, 192_000);
    assert.equal(high.actual_sample_rate, 384_000);
  });
});

describe('the samples', () => {
  test('too few and too many: 400 with both lengths', async () => {
    const few = readProblem(await postJson(service, json([samplesOf({ seconds: 3 })])), 'audio_too_short');
    assert.deepEqual([few.min_seconds, few.actual_seconds], [4, 3]);
    const many = json([new Array(44_100 * 11).fill(0)]);
    const long = readProblem(await postJson(service, many), 'audio_too_long');
    assert.deepEqual([long.max_seconds, long.actual_seconds], [10, 11]);
    const none = readProblem(await postJson(service, json([[]])), 'audio_too_short');
    assert.equal(none.actual_seconds, 0);
  });

  test('beyond 2 or not numbers: 400 that names the index; invalid JSON: 400 that shows the format', async () => {
    const zeros = '0,'.repeat(200_000);
    const place = /payload\[0\]\[200000\]/;
    const words = (value: string) => (JSON_VALUES.includes(value) ? place : /not valid JSON.*payload/);
    const JSON_VALUES = ['2.01', '-32768', '1e999', 'null', '"0.5"', '[]'];
    for (const value of [...JSON_VALUES, 'NaN', 'Infinity', '-Infinity', '0x1', '.5', '']) {
      const response = await postJson(service, `{"payload": [[${zeros}${value}]]}`);
      assert.match(readProblem(response, 'bad_request').detail, words(value), value);
    }
  });

  test('with the wrong nesting or shape: 400 that shows the right one', async () => {
    const samples = samplesOf({ seconds: 4.5, rate: 1000 });
    const bodies = [
      json(samples),
      json([[samples]]),
      json([samples, samples]),
      json({ samples }),
      json(null),
      JSON.stringify({ samples: [samples] }),
      JSON.stringify([[samples]]),
      JSON.stringify({ payload: [samples], rate: 44_100 }),
      JSON.stringify({ rate: 44_100, payload: [samples] }),
      '',
      '{}',
      'null',
      '"',
      '{"payload": [[0.1, 0.2',
      `${json([samples])} {}`,
      `${JSON.stringify(json([samples]))}x`,
      '['.repeat(100_000),
      `{"payload": [[${'['.repeat(100_000)}`,
      '{"a":'.repeat(100_000),
      ' '.repeat(100_000),
    ];
    for (const body of bodies) readProblem(await postJson(service, body), 'bad_request');
  });

  test('more than 12 MiB of text: 413', async () => {
    const problem = readProblem(
      await postJson(service, `{"payload": [[${' 0,'.repeat(5 * 2 ** 20)}`),
      'file_too_large',
    );
    assert.equal(problem.max_bytes, 12 * 2 ** 20);
  });
});

test('too many requests: 429 with Retry-After', async () => {
  const limited = await testApp({ SERVICE_RATE_LIMIT: '2' });
  const get = () => limited.app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: limited.key } });
  const first = await get();
  assert.equal(first.statusCode, 200);
  assert.equal(first.headers['ratelimit-limit'], '2');
  assert.equal(first.headers['ratelimit-remaining'], '1');
  await get();
  const refused = await get();
  const problem = readProblem(refused, 'rate_limited');
  assert.equal(problem.retry_after_seconds, 30);
  assert.equal(refused.headers['retry-after'], '30');
  assert.equal(refused.headers['ratelimit-remaining'], '0');
  // Another key has its own bucket.
  const { key } = await limited.stores.keys.create('other');
  const other = await limited.app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: key } });
  assert.equal(other.statusCode, 200);
});

test('no memory for another body: 503 before it is read, until some is free', async () => {
  const small = await testApp();
  const { port } = await small.listen();
  const { admission } = small.services;
  const body = fileForm(wav());
  const request = (length: number) =>
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: small.key,
      'content-type': FORM_TYPE,
      'content-length': length,
    });
  // A key may hold as much memory as it leaves to others: four of the largest bodies.
  const slow = Array.from({ length: 4 }, () =>
    new RawClient(port).send(request(32 * 1024 * 1024)).send(body.subarray(0, 1000)),
  );
  while (admission.inFlight < slow.length) await sleep(5);
  const fifth = new RawClient(port).send(request(body.length));
  const refused = await fifth.answer();
  const problem = readProblem(refused, 'overloaded');
  assert.equal(refused.headers['retry-after'], String(problem.retry_after_seconds));
  assert.ok((problem.retry_after_seconds ?? 0) >= 1);
  for (const client of slow) client.destroy();
  while (admission.inFlight > 0) await sleep(5);
  // The refused client keeps sending its body, as clients do, and then reuses the connection.
  fifth.send(body).send(request(body.length)).send(body);
  assert.equal((await fifth.answer()).status, 200);
  fifth.destroy();
});

test('reading the rest of a refused body keeps no process running', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  readProblem(await postFile(service, wav(), { headers: { [API_KEY_HEADER]: 'wrong' } }), 'invalid_api_key');
  assert.ok(timers() <= before);
});

test('a full inference queue: 503', async () => {
  const classifier = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1, queueLimit: 1 });
  after(() => classifier.close());
  const busy = await testApp({}, { classifier });
  const answers = await Promise.all(Array.from({ length: 12 }, () => postFile(busy, wav())));
  const refused = answers.filter(({ statusCode }) => statusCode !== 200);
  assert.ok(refused.length > 0 && refused.length < answers.length);
  for (const response of refused) {
    readProblem(response, 'overloaded');
    assert.ok(Number(response.headers['retry-after']) >= 1);
  }
});

test('a body that stops halfway: 408', async () => {
  const hasty = await testApp({}, { bodyTimeouts: { clip: { idleMs: 150, totalMs: 5_000 } } });
  const { port } = await hasty.listen();
  const client = new RawClient(port).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: hasty.key,
      'content-type': FORM_TYPE,
      'content-length': 400_000,
    }),
  );
  client.send(fileForm(wav()).subarray(0, 1000));
  readProblem(await client.answer(), 'request_timeout');
  client.destroy();
});

test('a body that trickles forever: 408', async () => {
  const hasty = await testApp({}, { bodyTimeouts: { clip: { idleMs: 5_000, totalMs: 400 } } });
  const { port } = await hasty.listen();
  const client = new RawClient(port).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: hasty.key,
      'content-type': 'application/json',
      'content-length': 400_000,
    }),
  );
  client.send('{"payload": [[');
  const trickle = setInterval(() => client.send('0,'), 20);
  readProblem(await client.answer(), 'request_timeout');
  clearInterval(trickle);
  client.destroy();
});

test('not HTTP: 400; endless headers: 431', async () => {
  const { port } = await service.listen();
  const nonsense = new RawClient(port).send('good morning\r\n\r\n');
  readProblem(await nonsense.answer(), 'bad_request');
  await nonsense.closed;
  const large = new RawClient(port).send(head('GET', PATHS.models, { 'x-large': 'x'.repeat(20_000) }));
  readProblem(await large.answer(), 'headers_too_large');
  await large.closed;
});

test('an internal error: 500 without internal details', async () => {
  const broken = await testApp();
  broken.stores.keys.lookUp = () => Promise.reject(new Error('secret inner detail'));
  const response = await broken.app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: broken.key } });
  const problem = readProblem(response, 'internal');
  assert.ok(!response.body.includes('secret inner detail'));
  assert.match(problem.detail, /request_id/);
});

test('every error code of this interface was reached above', () => {
  const ofLongRecordings: ErrorCode[] = [
    'forbidden',
    'conflict',
    'gone',
    'storage_limit',
    'quota_exceeded',
    'processing_failed',
    'result_too_large',
  ];
  assert.deepEqual(
    ERROR_CODES.filter((code) => !ofLongRecordings.includes(code) && !reached.has(code)),
    [],
  );
});
