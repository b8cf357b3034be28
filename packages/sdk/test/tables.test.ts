// One test per row of the client's documented tables, named after the row.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DISCRETE_ANSWER, KEY, SPEECH_SECONDS, TIMELINE } from '@undertone/testing/flaky-server';
import {
  ConfigError,
  EmotionClient,
  InvalidRequestIdError,
  type LogLevel,
  MissingApiKeyError,
  MissingFileError,
  PredictionTimeoutError,
  RequestFailedError,
  UploadFailedError,
} from '../src/index.ts';
import { clientWithoutWaits, flakyServer, MIB, scrambled, temporaryFile } from './support/clients.ts';
import { withEnvironment } from './support/environment.ts';
import { runOnTerminal } from './support/terminal.ts';

const UNKNOWN_ID = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';

describe('client construction', () => {
  test('api_key: sent in the header x-api-key, with both forms of the constructor', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment({ SERVICE_URL: server.origin }, async () => {
      await new EmotionClient(KEY).discrete.emotions(scrambled(10));
      await new EmotionClient({ apiKey: KEY }).discrete.emotions(scrambled(10));
    });
    assert.deepEqual(
      server.seen.map((seen) => seen.headers['x-api-key']),
      [KEY, KEY],
    );
  });

  test('part_size: 5 MiB by default, set in the constructor', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment({ SERVICE_URL: server.origin }, async () => {
      await new EmotionClient(KEY).asynch.upload(scrambled(5 * MIB + 1));
      assert.deepEqual(partSizes(server.calls('part')), [5 * MIB, 1]);
      server.seen.length = 0;
      await new EmotionClient(KEY, 2 * MIB).asynch.upload(scrambled(5 * MIB));
      assert.deepEqual(partSizes(server.calls('part')), [2 * MIB, 2 * MIB, MIB]);
    });
  });

  test('show_progress: draws a bar on a terminal by default, none if false', async (t) => {
    const server = await flakyServer(t);
    const drawn = await runOnTerminal(UPLOAD_SCRIPT, { ...environmentOf(server.settings), SHOW: '' });
    assert.match(drawn, /Uploading +█+ +100 %/);
    const silent = await runOnTerminal(UPLOAD_SCRIPT, { ...environmentOf(server.settings), SHOW: 'no' });
    assert.doesNotMatch(silent, /Uploading/);
    assert.match(silent, /sent/);
  });

  test('max_threads: 3 parts in flight by default, set in the constructor', async (t) => {
    for (const [maxThreads, expected] of [
      [undefined, 3],
      [1, 1],
      [5, 5],
    ]) {
      const server = await flakyServer(t);
      let [inFlight, most] = [0, 0];
      const counting: typeof fetch = async (input, init) => {
        most = Math.max(most, ++inFlight);
        return fetch(input, init).finally(() => inFlight--);
      };
      const settings = { ...server.settings, maxThreads, partSize: MIB, fetch: counting };
      await clientWithoutWaits(settings).client.asynch.upload(scrambled(10 * MIB));
      assert.equal(most, expected);
    }
  });

  test('retry attempts: 5 by default, set in the constructor', async (t) => {
    for (const [retryAttempts, tries] of [
      [undefined, 6],
      [0, 1],
      [2, 3],
    ]) {
      const server = await flakyServer(t);
      server.faults = () => ({ kind: 'answer', status: 500 });
      const { client } = clientWithoutWaits({ ...server.settings, retryAttempts });
      await assert.rejects(client.asynch.emotions(UNKNOWN_ID), RequestFailedError);
      assert.equal(server.seen.length, tries);
    }
  });
});

describe('environment variables', () => {
  test('SERVICE_API_KEY: used if the constructor gets no key', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment({ SERVICE_API_KEY: KEY, SERVICE_URL: server.origin }, async () => {
      await new EmotionClient().discrete.emotions(scrambled(10));
    });
    assert.equal(server.seen[0]?.headers['x-api-key'], KEY);
  });

  test('SERVICE_URL: the URL of the server for all operations', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment({ SERVICE_API_KEY: KEY, SERVICE_URL: `${server.origin}//` }, async () => {
      const client = new EmotionClient();
      await client.discrete.emotions(scrambled(10));
      await client.asynch.classify(scrambled(10));
      await client.models();
    });
    assert.deepEqual(
      server.seen.filter(({ route }) => route !== 'part').map(({ url }) => url.pathname),
      [
        '/v1/discrete/emotion',
        '/v1/asynch/upload/initiate',
        '/v1/asynch/upload/complete',
        '/v1/asynch/prediction',
        '/v1/models',
      ],
    );
  });

  test('SERVICE_DISCRETE_URL: the full URL for short recordings', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment(
      { SERVICE_DISCRETE_URL: `${server.origin}/discrete/emotion?tenant=7` },
      async () => {
        await new EmotionClient(KEY).discrete.emotions(scrambled(10), { model: '7emotions' });
      },
    );
    assert.equal(server.seen[0]?.url.href, `${server.origin}/discrete/emotion?tenant=7&model=7emotions`);
  });

  test('SERVICE_ASYNCH_URL: the base of the asynch paths', async (t) => {
    const server = await flakyServer(t);
    await withEnvironment({ SERVICE_ASYNCH_URL: `${server.origin}/asynch/` }, async () => {
      await new EmotionClient(KEY).asynch.upload(scrambled(10));
    });
    assert.deepEqual(
      server.seen.filter(({ route }) => route !== 'part').map(({ url }) => url.pathname),
      ['/asynch/upload/initiate', '/asynch/upload/complete'],
    );
  });

  test('SERVICE_LOG_LEVEL: the minimum level; the names of the server, case-insensitive', async (t) => {
    const server = await flakyServer(t);
    server.faults = ({ route, time }) =>
      route === 'part' && time === 0 ? { kind: 'answer', status: 500 } : undefined;
    const spoken: Record<string, string[]> = {};
    for (const level of ['trace', 'DEBUG', 'info', 'Warn', 'error', 'fatal', 'SILENT']) {
      server.seen.length = 0;
      const { client, lines } = clientWithoutWaits({ ...server.settings, logLevel: level as LogLevel });
      await client.asynch.upload(scrambled(10));
      spoken[level] = [...new Set(lines.map((line) => /^undertone (\w+):/.exec(line)?.[1] ?? line))].sort();
    }
    assert.deepEqual(spoken, {
      trace: ['debug', 'info', 'warn'],
      DEBUG: ['debug', 'info', 'warn'],
      info: ['info', 'warn'],
      Warn: ['warn'],
      error: [],
      fatal: [],
      SILENT: [],
    });
    await withEnvironment({ SERVICE_API_KEY: KEY, SERVICE_LOG_LEVEL: 'silent' }, async () => {
      new EmotionClient().validateConfig();
    });
    await withEnvironment({ SERVICE_API_KEY: KEY, SERVICE_LOG_LEVEL: 'loud' }, async () => {
      assert.throws(
        () => new EmotionClient().validateConfig(),
        /SERVICE_LOG_LEVEL.*debug, info, warn, error, fatal, silent/,
      );
    });
  });

  test('validateConfig: throws one error with all problems', () => {
    const { client } = clientWithoutWaits({ partSize: 7, maxThreads: 0, asynchUrl: 'nowhere' });
    assert.throws(
      () => client.validateConfig(),
      (error) => {
        assert(error instanceof ConfigError);
        assert.equal(error.problems.length, 4);
        assert.match(error.message, /^Invalid configuration:\n- The API key is missing/);
        return true;
      },
    );
    clientWithoutWaits({ apiKey: KEY }).client.validateConfig();
  });
});

describe('discrete.emotions', () => {
  test('file_path: the file is sent as the form part named file; returns the prediction result', async (t) => {
    const server = await flakyServer(t);
    const path = await temporaryFile(t, 5000, 'hello.wav');
    const { client } = clientWithoutWaits(server.settings);
    const result = await client.discrete.emotions(path);
    assert.deepEqual(result, DISCRETE_ANSWER);
    assert.equal(JSON.stringify(result), JSON.stringify(DISCRETE_ANSWER));
    assert.equal(result.speechSeconds, SPEECH_SECONDS);
    const [call] = server.calls('discrete');
    assert.match(call?.headers['content-type'] ?? '', /^multipart\/form-data; boundary=/);
    assert.match(call?.body.toString('latin1') ?? '', /name="file"; filename="hello.wav"/);
    assert(call?.body.includes(scrambled(5000)));
  });

  test('throws: file missing', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(client.discrete.emotions('/there/is/no/such.wav'), MissingFileError);
    assert.equal(server.seen.length, 0);
  });

  test('throws: API key missing', async () => {
    await assert.rejects(clientWithoutWaits({}).client.discrete.emotions(scrambled(10)), MissingApiKeyError);
  });

  test('throws: request failed', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits({ ...server.settings, apiKey: 'another' });
    await assert.rejects(client.discrete.emotions(scrambled(10)), (error) => {
      assert(error instanceof RequestFailedError);
      assert.deepEqual([error.status, error.code, error.requestId], [401, 'invalid_api_key', 'http-1']);
      return true;
    });
    await server.stop().catch(() => {});
    await assert.rejects(client.discrete.emotions(scrambled(10)), {
      name: 'ConnectionFailedError',
      code: 'connection_failed',
    });
  });
});

describe('asynch.upload', () => {
  test('file_path: the file arrives byte for byte; returns the request identifier', async (t) => {
    const server = await flakyServer(t);
    const path = await temporaryFile(t, 3 * MIB + 17, 'talk.wav');
    const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
    const requestId = await client.asynch.upload(path);
    assert(server.assembled(requestId).equals(scrambled(3 * MIB + 17)));
    assert.equal(server.uploads.get(requestId)?.query.get('file_name'), 'talk.wav');
  });

  test('partSize: positional or named, 1 MB to 100 MB', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await client.asynch.upload(scrambled(3 * MIB), MIB);
    await client.asynch.upload(scrambled(3 * MIB), { partSize: MIB });
    assert.equal(server.calls('part').length, 6);
    await assert.rejects(client.asynch.upload(scrambled(10), MIB - 1), ConfigError);
    await assert.rejects(client.asynch.upload(scrambled(10), { partSize: 100 * MIB + 1 }), ConfigError);
    assert.equal(server.calls('initiate').length, 2);
  });

  test('maxRetries: positional or named, 3 for each part by default', async (t) => {
    for (const [upload, tries] of [
      [{}, 4],
      [{ maxRetries: 1 }, 2],
      [{ maxRetries: 0 }, 1],
    ] as const) {
      const server = await flakyServer(t);
      server.faults = ({ route }) => (route === 'part' ? { kind: 'answer', status: 500 } : undefined);
      const { client } = clientWithoutWaits(server.settings);
      await assert.rejects(client.asynch.upload(scrambled(10), upload), UploadFailedError);
      assert.equal(server.calls('part').length, tries);
      const { maxRetries } = { maxRetries: undefined, ...upload };
      server.seen.length = 0;
      await assert.rejects(client.asynch.upload(scrambled(10), undefined, maxRetries), UploadFailedError);
      assert.equal(server.calls('part').length, tries);
    }
  });

  test('throws: file missing', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(client.asynch.upload('/there/is/no/such.wav'), MissingFileError);
    await assert.rejects(client.asynch.upload('/tmp'), /folder/);
    assert.equal(server.seen.length, 0);
  });

  test('throws: API key missing', async () => {
    await assert.rejects(clientWithoutWaits({}).client.asynch.upload(scrambled(10)), MissingApiKeyError);
  });

  test('throws: upload failed', async (t) => {
    const server = await flakyServer(t);
    server.faults = ({ route }) => (route === 'part' ? { kind: 'answer', status: 403 } : undefined);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(client.asynch.upload(scrambled(10)), (error) => {
      assert(error instanceof UploadFailedError);
      assert.equal(error.status, 403);
      assert.equal(error.requestId, [...server.deleted][0]);
      return true;
    });
  });
});

describe('asynch.emotions', () => {
  test('request_id: returns the asynch result', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    const requestId = await client.asynch.upload(scrambled(10));
    const result = await client.asynch.emotions(requestId);
    assert.deepEqual(result, { request_id: requestId, status: 'completed', emotions: TIMELINE });
  });

  test('max_tries: polls 20 times by default, positional or named, 1 to 100', async (t) => {
    const server = await flakyServer(t);
    server.pendingPolls = Number.POSITIVE_INFINITY;
    const { client } = clientWithoutWaits(server.settings);
    const requestId = await client.asynch.upload(scrambled(10));
    for (const [ask, tries] of [
      [() => client.asynch.emotions(requestId), 20],
      [() => client.asynch.emotions(requestId, 3), 3],
      [() => client.asynch.emotions(requestId, { maxTries: 100 }), 100],
    ] as const) {
      server.seen.length = 0;
      await assert.rejects(ask(), PredictionTimeoutError);
      assert.equal(server.calls('prediction').length, tries);
    }
    await assert.rejects(client.asynch.emotions(requestId, 101), ConfigError);
    await assert.rejects(client.asynch.emotions(requestId, 0), ConfigError);
  });

  test('interval: milliseconds, 5000 by default, positional or named, 1000 to 60000', async (t) => {
    const server = await flakyServer(t);
    const { client, waits } = clientWithoutWaits(server.settings);
    server.pendingPolls = 2;
    for (const [ask, wait] of [
      [(id: string) => client.asynch.emotions(id), 5000],
      [(id: string) => client.asynch.emotions(id, 20, 1000), 1000],
      [(id: string) => client.asynch.emotions(id, { interval: 60_000 }), 60_000],
    ] as const) {
      const requestId = await client.asynch.upload(scrambled(10));
      waits.length = 0;
      await ask(requestId);
      assert.deepEqual(waits, [wait, wait]);
    }
    await assert.rejects(client.asynch.emotions(UNKNOWN_ID, 20, 999), ConfigError);
    await assert.rejects(client.asynch.emotions(UNKNOWN_ID, { interval: 60_001 }), ConfigError);
  });

  test('throws: request_id invalid', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(client.asynch.emotions('not-an-id'), InvalidRequestIdError);
    assert.equal(server.seen.length, 0);
    await assert.rejects(client.asynch.emotions(UNKNOWN_ID), InvalidRequestIdError);
  });

  test('throws: prediction timed out, with the progress', async (t) => {
    const server = await flakyServer(t);
    server.pendingPolls = 9;
    const { client } = clientWithoutWaits(server.settings);
    const requestId = await client.asynch.upload(scrambled(10));
    await assert.rejects(client.asynch.emotions(requestId, 4, 2000), (error) => {
      assert(error instanceof PredictionTimeoutError);
      assert.equal(error.requestId, requestId);
      assert.match(error.message, /^Not finished yet: 40 % done\. .*4 times.*2000 milliseconds/);
      return true;
    });
  });

  test('rule 1: waits only between polls, not after the last one', async (t) => {
    const server = await flakyServer(t);
    server.pendingPolls = 99;
    const { client, waits } = clientWithoutWaits(server.settings);
    const requestId = await client.asynch.upload(scrambled(10));
    await assert.rejects(client.asynch.emotions(requestId, 3), PredictionTimeoutError);
    assert.equal(waits.length, 2);
  });

  test('rule 2: an interval meant as seconds throws and says milliseconds', async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(
      client.asynch.emotions(UNKNOWN_ID, 20, 5),
      /interval is 5: .*milliseconds.*1000 to 60000/,
    );
    assert.equal(server.seen.length, 0);
  });
});

const UPLOAD_SCRIPT = `
  import { EmotionClient } from '${new URL('../src/index.ts', import.meta.url).href}';
  const showProgress = process.env.SHOW === 'no' ? false : undefined;
  await new EmotionClient({ showProgress }).asynch.upload(new Uint8Array(1000));
  process.stdout.write('sent');
`;

function environmentOf({ apiKey, baseUrl }: { apiKey: string; baseUrl: string }) {
  return { SERVICE_API_KEY: apiKey, SERVICE_URL: baseUrl };
}

function partSizes(parts: { part: number | null; body: Buffer }[]): number[] {
  return parts.toSorted((a, b) => (a.part ?? 0) - (b.part ?? 0)).map(({ body }) => body.length);
}
