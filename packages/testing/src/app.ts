import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Classifier, DEFAULT_MODELS_DIR } from '@undertone/classifier';
import { API_KEY_HEADER, ERRORS, type ErrorCode, PATHS, type Problem } from '@undertone/contract';
import { Problem as ProblemSchema } from '@undertone/contract/schemas';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import Value from 'typebox/value';
import { composeServices, type Dependencies } from '../../server/src/compose.ts';
import {
  buildApp,
  createLogger,
  openStores,
  readSettings,
  type Services,
  type Stores,
} from '../../server/src/index.ts';
import { Metrics } from '../../server/src/operators/metrics.ts';
import type { Sweep } from '../../server/src/recordings/sweep.ts';
import { FORM_TYPE, fileForm } from './form.ts';
import { TEST_MODELS } from './paths.ts';
import { LONG_TIMEOUT_MS } from './timeouts.ts';

export interface TestApp {
  app: FastifyInstance;
  key: string;
  /** Its worker rests until it is started. */
  services: Services;
  stores: Stores;
  /** Rests until it is run. */
  sweep: Sweep;
  dataDir: string;
  /** Starts listening on a free port, once. */
  listen(): Promise<{ port: number; url: string }>;
}

/** Creates stores for each app and returns their settings; undefined for the embedded stores. */
let otherStores: (() => Promise<Record<string, string>>) | undefined;

export function runOver(newStores: () => Promise<Record<string, string>>): void {
  otherStores = newStores;
}

/** A test of what only the embedded stores do: parts are sent to this server and stored in the data folder. */
export function testEmbedded(name: string, body: () => Promise<void>): void {
  if (otherStores === undefined) test(name, body);
}

export function describeEmbedded(name: string, suite: () => void): void {
  if (otherStores === undefined) describe(name, suite);
}

const classifiers = new Map<string, Promise<Classifier>>();

function shared(modelsDir: string): Promise<Classifier> {
  const started = classifiers.get(modelsDir) ?? Classifier.start({ modelsDir, workers: 1, ffmpegPath: null });
  classifiers.set(modelsDir, started);
  return started;
}

/**
 * The test models on one thread, shared by a test file. Without ffmpeg, as on a machine that has none.
 *
 * `async`, so that every caller awaits a promise of its own: `after` belongs to the test that made the promise awaited last, and
 * hooks added to a test that is over never run.
 */
export async function sharedClassifier(): Promise<Classifier> {
  return shared(TEST_MODELS);
}

/** The same with the shipped models, for tests that are about the model. */
export async function shippedClassifier(): Promise<Classifier> {
  return shared(DEFAULT_MODELS_DIR);
}

after(async () => {
  for (const classifier of classifiers.values()) await (await classifier).close();
});

export async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'undertone-test-'));
  after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

export interface TestOptions extends Partial<Omit<Dependencies, 'settings' | 'stores' | 'stopping'>> {
  /** How to open the stores: on a thread, as the server does, unless the test sets the clock. */
  readonly kind?: 'thread' | 'local';
  readonly dataDir?: string;
  /** Shorter in tests of stores that do not answer. */
  readonly answerMs?: number;
  readonly stopping?: AbortSignal;
}

/** The real app with its own stores. Everything is closed and removed after the test file. */
export async function testApp(env: Record<string, string> = {}, options: TestOptions = {}): Promise<TestApp> {
  const { now, answerMs = LONG_TIMEOUT_MS } = options;
  const dataDir = options.dataDir ?? (await tempDir());
  const settings = readSettings({
    SERVICE_DATA_DIR: dataDir,
    SERVICE_LOG_LEVEL: 'silent',
    ...(await otherStores?.()),
    ...env,
  });
  const kind = options.kind ?? (now === undefined ? 'thread' : 'local');
  const stores = await openStores(settings, { kind, answerMs, ...(now && { now }) });
  const { key } = await stores.keys.create('test');
  const metrics = options.metrics ?? new Metrics();
  const { services, sweep } = composeServices({
    ...options,
    settings,
    stores,
    metrics,
    classifier: options.classifier ?? (await sharedClassifier()),
    logger: options.logger ?? createLogger(settings.logLevel),
    stopping: options.stopping ?? new AbortController().signal,
  });
  const app = await buildApp(services);
  after(async () => {
    const closed = app.close();
    app.server.closeAllConnections();
    await closed;
    await services.worker.stop();
    await services.webhooks.stop();
    await sweep.stop();
    await services.authenticator.close();
    await services.audioHours.close();
    metrics.close();
    await stores.close();
  });
  let address: Promise<string> | undefined;
  return {
    app,
    key,
    services,
    stores,
    sweep,
    dataDir,
    listen: async () => {
      address ??= app.listen({ host: '127.0.0.1', port: 0 });
      const url = await address;
      return { url, port: Number(new URL(url).port) };
    },
  };
}

export function postFile(
  { app, key }: TestApp,
  file: Buffer | string,
  more: InjectOptions = {},
): Promise<LightMyRequestResponse> {
  return app.inject({
    method: 'POST',
    url: PATHS.discrete,
    payload: fileForm(file),
    ...more,
    headers: { [API_KEY_HEADER]: key, 'content-type': FORM_TYPE, ...more.headers },
  });
}

export function postJson({ app, key }: TestApp, payload: string | Buffer, more: InjectOptions = {}) {
  return app.inject({
    method: 'POST',
    url: PATHS.discrete,
    payload,
    ...more,
    headers: { [API_KEY_HEADER]: key, 'content-type': 'application/json', ...more.headers },
  });
}

interface AnyResponse {
  status: number;
  contentType: unknown;
  requestId: unknown;
  body: string;
}

/** Parses a response that must be a problem, and checks everything that all problems have in common. */
export function readProblem(
  response: LightMyRequestResponse | AnyResponse,
  code: ErrorCode,
  status: number = ERRORS[code].status,
): Problem {
  const plain: AnyResponse =
    'statusCode' in response
      ? {
          status: response.statusCode,
          contentType: response.headers['content-type'],
          requestId: response.headers['x-request-id'],
          body: response.body,
        }
      : response;
  const problem = JSON.parse(plain.body) as Problem;
  assert.equal(problem.code, code, plain.body);
  assert.equal(plain.status, status);
  assert.equal(problem.status, plain.status);
  assert.equal(problem.title, ERRORS[code].title);
  assert.equal(plain.contentType, 'application/problem+json');
  assert.equal(problem.request_id, plain.requestId);
  assert.ok(Value.Check(ProblemSchema, problem), plain.body);
  return problem;
}
