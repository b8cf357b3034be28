import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTimestamp, plainEtag } from '@undertone/contract';
import { RequestId } from '@undertone/contract/schemas';
import { originalPartSize, planParts } from '../src/asynch/open.ts';
import { checkRequestId } from '../src/asynch/poll.ts';
import type { PlatformClient } from '../src/client.ts';
import { NUMBERS, resolveConfig } from '../src/config.ts';
import {
  ConfigError,
  InvalidRequestIdError,
  rethrowAs,
  UndertoneError,
  UploadFailedError,
} from '../src/errors.ts';
import { nodePlatform } from '../src/platform/node.ts';
import {
  ASYNCH_RETRIES,
  BACKOFF,
  LONGEST_RETRY_AFTER_SECONDS,
  parseRetryAfter,
  retryDelay,
} from '../src/retry.ts';
import { baseName } from '../src/source.ts';
import type { ClientOptions } from '../src/types.ts';
import { joinUrl, modelsUrl, withQuery } from '../src/urls.ts';
import { type Cases, readCases } from './support/cases.ts';
import { clientWithoutWaits, collect, flakyServer, scrambled } from './support/clients.ts';

const cases = await readCases();
const { requestIds } = cases;

for (const setting of cases.settings) {
  test(`shared cases: ${setting.name} accepts its range and rejects the rest before anything is sent`, async (t) => {
    assert.equal(NUMBERS[setting.name].default, setting.default);
    const server = await flakyServer(t);
    for (const place of setting.in) {
      for (const value of setting.accepts) {
        await useSetting(server.settings, place, setting.name, value).catch(assertNotConfig);
      }
      const before = server.seen.length;
      for (const value of setting.refuses) {
        await assert.rejects(useSetting(server.settings, place, setting.name, value), (error) => {
          assert(error instanceof ConfigError);
          for (const words of setting.messageContains) assert(error.message.includes(words), error.message);
          return true;
        });
      }
      assert.equal(server.seen.length, before);
    }
  });
}

test('shared cases: defaults and the names of the environment variables', () => {
  const config = resolveConfig({}, { ...nodePlatform, env: () => undefined });
  assert.equal(config.showProgress, cases.defaults.showProgress);
  assert.equal(config.baseUrl, cases.defaults.baseUrl);
  assert.equal(config.discreteUrl, cases.defaults.discreteUrl);
  assert.equal(config.asynchUrl, cases.defaults.asynchUrl);
  const fromEnv = resolveConfig({}, { ...nodePlatform, env: (name) => `from ${name}` });
  for (const [name, variable] of Object.entries(cases.environment)) {
    assert.equal(fromEnv[name as keyof typeof cases.environment], `from ${variable}`);
  }
});

for (const { name, options, environment, discreteUrl, asynchUrl } of cases.addresses) {
  test(`shared cases: URLs: ${name}`, () => {
    const config = resolveConfig(options, { ...nodePlatform, env: (variable) => environment[variable] });
    assert.deepEqual([config.discreteUrl, config.asynchUrl], [discreteUrl, asynchUrl]);
  });
}

for (const { name, options, problems } of cases.config) {
  test(`shared cases: validateConfig: ${name}`, () => {
    const { client } = clientWithoutWaits(options);
    if (problems.length === 0) return client.validateConfig();
    assert.throws(
      () => client.validateConfig(),
      (error) => {
        assert(error instanceof ConfigError);
        assert.equal(error.problems.length, problems.length, error.message);
        problems.forEach((words, i) => {
          for (const word of words) assert(error.problems[i]?.includes(word), error.problems[i]);
        });
        if (options.apiKey) assert(!error.message.includes(options.apiKey));
        return true;
      },
    );
  });
}

test('shared cases: delays between retries, and Retry-After', () => {
  const { delays, retryAfterHeaders, retryableStatuses, finalStatuses, ...limits } = cases.backoff;
  assert.deepEqual(
    { ...BACKOFF, longestRetryAfterSeconds: LONGEST_RETRY_AFTER_SECONDS },
    {
      firstMs: limits.firstMs,
      longestMs: limits.longestMs,
      longestRetryAfterSeconds: limits.longestRetryAfterSeconds,
    },
  );
  for (const { retry, random, retryAfterSeconds, delayMs } of delays) {
    assert.equal(retryDelay(retry, random, retryAfterSeconds), delayMs);
  }
  for (const { header, now, seconds } of retryAfterHeaders) {
    assert.equal(parseRetryAfter(header, now ? Date.parse(now) : Date.now()) ?? null, seconds, `${header}`);
  }
  assert.deepEqual(ASYNCH_RETRIES.statuses, retryableStatuses);
  for (const status of finalStatuses) assert(!ASYNCH_RETRIES.statuses.includes(status), `${status}`);
});

for (const { name, operation, route, answers, settings, waits, ends } of cases.backoff.schedules) {
  test(`shared cases: ${name}`, async (t) => {
    const server = await flakyServer(t);
    const { maxRetries, retryAttempts } = settings;
    const known = await clientWithoutWaits(server.settings).client.asynch.upload(scrambled(100));
    server.seen.length = 0;
    const { client, waits: waited } = clientWithoutWaits({ ...server.settings, retryAttempts });
    server.faults = (seen) => {
      const answer = answers[Math.min(seen.time, answers.length - 1)];
      if (seen.route !== route || answer === null || answer === undefined) return undefined;
      if (typeof answer === 'number') return { kind: 'answer', status: answer };
      return { kind: 'answer', status: answer.status, headers: { 'retry-after': answer.retryAfter } };
    };
    const done = perform(client, operation, known, maxRetries === undefined ? {} : { maxRetries });
    if (ends === null) await done;
    else await assert.rejects(done, { name: classNameOf(ends, lastStatus(answers)) });
    assert.equal(waited.length, waits.length);
    waits.forEach(([least, most], i) => {
      const wait = waited[i] ?? Number.NaN;
      assert(wait >= least && wait <= most, `wait ${i} was ${wait}`);
    });
    assert.equal(server.calls(route).length, waits.length + 1);
  });
}

for (const { name, operation, status, headers, body, expect } of cases.errors) {
  test(`shared cases: ${operation}: ${name}`, async (t) => {
    const server = await flakyServer(t);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    server.faults = () => ({ kind: 'answer', status, headers, body: text });
    const { client } = clientWithoutWaits({ ...server.settings, retryAttempts: 2 });
    await assert.rejects(perform(client, operation, requestIds.example, {}), (error) => {
      assert(error instanceof UndertoneError, String(error));
      assert.equal(error.name, classNameOf(expect.error, expect.status));
      assert.equal(error.code, expect.code);
      assert.equal(error.status ?? null, expect.status);
      assert(error.message.includes(expect.messageContains), error.message);
      assert(!error.message.includes('token='), 'a query can contain secrets');
      assert.equal(error.requestId ?? null, expect.requestId);
      if (expect.retryAfterSeconds) assert.equal(error.retryAfterSeconds, expect.retryAfterSeconds);
      for (const [field, value] of Object.entries(expect.problem ?? {})) {
        assert.equal((error.problem as unknown as Record<string, unknown>)[field], value);
      }
      return true;
    });
    assert.equal(server.seen.length, expect.retried ? 3 : 1);
  });
}

for (const { name, operation, options, answer, call, result } of cases.operations) {
  test(`shared cases: ${operation}: ${name}`, async (t) => {
    const server = await flakyServer(t);
    if (answer) {
      const headers = { 'content-type': 'application/json', ...answer.headers };
      const body = JSON.stringify(answer.body);
      server.faults = () => ({ kind: 'answer', status: answer.status, headers, body });
    }
    const { client } = clientWithoutWaits(server.settings);
    const got = await perform(client, operation, requestIds.example, options);
    const [seen] = server.seen;
    assert(seen);
    assert.deepEqual([seen.method, seen.url.pathname], [call.method, call.path]);
    assert.deepEqual(Object.fromEntries(seen.url.searchParams), call.query);
    assert.equal('idempotency-key' in seen.headers, call.hasIdempotencyKey);
    if (result !== undefined) assert.deepEqual(got, result);
  });
}

for (const { operation, options, messageContains } of cases.refusals) {
  test(`shared cases: ${operation} rejects ${JSON.stringify(options)} before anything is sent`, async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    await assert.rejects(perform(client, operation, requestIds.example, options), (error) => {
      assert(error instanceof ConfigError);
      for (const words of messageContains) assert(error.message.includes(words), error.message);
      return true;
    });
    assert.equal(server.seen.length, 0);
  });
}

for (const { name, size, partSize, partCount, stored, begunWith } of cases.resume) {
  test(`shared cases: resume: ${name}`, () => {
    const parts = stored.map(([PartNumber, bytes]) => ({ PartNumber, bytes, ETag: '' }));
    assert.equal(originalPartSize(size, { part_count: partCount, parts }, partSize), begunWith);
  });
}

test('shared cases: client and server agree on valid request IDs', () => {
  const pattern = new RegExp((RequestId as unknown as { pattern: string }).pattern);
  for (const id of requestIds.accepts) {
    checkRequestId(id);
    assert.match(id, pattern);
  }
  for (const id of requestIds.refuses) {
    assert.throws(() => checkRequestId(id), InvalidRequestIdError);
    if (typeof id === 'string') assert.doesNotMatch(id, pattern);
  }
});

test('shared cases: URLs and file names', () => {
  const { join, withQuery: queries, models, fileNames } = cases.urls;
  for (const { base, path, query, url } of join) assert.equal(joinUrl(base, path, query), url);
  for (const { address, query, url } of queries) {
    const present = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null));
    assert.equal(withQuery(address, present as Record<string, string>), url);
  }
  for (const { asynchUrl, url } of models) assert.equal(modelsUrl(asynchUrl), url);
  for (const { path, name } of fileNames) assert.equal(baseName(path), name);
});

test('shared cases: parts of a recording', async () => {
  for (const { size, partSize, count, lastSize, error, code } of cases.parts) {
    const plan = () =>
      rethrowAs(
        () => UploadFailedError,
        undefined,
        async () => planParts(size, partSize),
      );
    if (error) {
      await assert.rejects(plan(), { name: error, code });
      continue;
    }
    const parts = await plan();
    const last = parts.at(-1);
    assert.equal(parts.length, count);
    assert.equal(last && last.end - last.start, lastSize);
  }
});

test('shared cases: ETags and timestamps', () => {
  for (const { etag, md5, matches } of cases.etags) assert.equal(plainEtag(etag) === md5, matches, etag);
  for (const { t: stamp, seconds } of cases.timestamps) assert.equal(parseTimestamp(stamp), seconds);
});

/** Kinds of `RequestFailedError` have classes of their own. */
function classNameOf(name: string, status: number | null): string {
  if (name !== 'RequestFailedError') return name;
  return status === 401 ? 'AuthenticationError' : status === 429 ? 'RateLimitError' : name;
}

function lastStatus(answers: Cases['backoff']['schedules'][number]['answers']): number | null {
  const last = answers.at(-1) ?? null;
  return typeof last === 'object' && last ? last.status : last;
}

async function useSetting(
  settings: ClientOptions,
  place: Cases['settings'][number]['in'][number],
  name: string,
  value: unknown,
): Promise<unknown> {
  if (place === 'client') {
    const { client } = clientWithoutWaits({ ...settings, [name]: value });
    return client.asynch.emotions(requestIds.example);
  }
  const { client } = clientWithoutWaits(settings);
  return perform(client, place, requestIds.example, { [name]: value });
}

/** An accepted setting leads to a response, which may be that the request is unknown. */
function assertNotConfig(error: unknown): void {
  assert(!(error instanceof ConfigError), String(error));
}

async function perform(
  client: PlatformClient,
  operation: Cases['errors'][number]['operation'],
  requestId: string,
  options: Record<string, unknown>,
): Promise<unknown> {
  switch (operation) {
    case 'discrete.emotions':
      return client.discrete.emotions(scrambled(1000), options);
    case 'discrete.many':
      return (await collect(client.discrete.many([scrambled(1000)], options)))[0]?.result;
    case 'asynch.upload':
      return client.asynch.upload(scrambled(1000), options);
    case 'asynch.resume':
      return client.asynch.upload(scrambled(1000), { resume: requestId, ...options });
    case 'asynch.submit':
      return client.asynch.submit(scrambled(1000), options);
    case 'asynch.emotions':
      return client.asynch.emotions(requestId, options);
    case 'asynch.list':
      return client.asynch.list(options);
    case 'asynch.webhookSecret':
      return client.asynch.webhookSecret();
    case 'asynch.delete':
      return client.asynch.delete(requestId);
    case 'models':
      return client.models();
  }
}
