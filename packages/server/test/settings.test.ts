import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readSettings, SETTINGS, SettingsError } from '../src/index.ts';
import { requireSharedRecordings, unknownVariables } from '../src/settings.ts';

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.problems;
  }
  return [];
}

test('without any variable the defaults apply', () => {
  assert.deepEqual(readSettings({}), {
    host: '127.0.0.1',
    port: 8080,
    operationsPort: 0,
    metricsOwners: false,
    publicUrl: '',
    dataDir: fileURLToPath(new URL('../../../.undertone', import.meta.url)),
    apiKey: '',
    weights: 'research',
    modelsDir: '',
    workers: 'auto',
    queueLimit: 64,
    asynchJobs: 2,
    storageLimit: 10 * 1024 ** 3,
    queuedLimit: 1_000,
    openLimit: 1_000,
    audioHoursLimit: 0,
    rateLimit: 0,
    streamLimit: 100,
    streamTotalLimit: 'auto',
    socketIo: true,
    webhookPrivate: false,
    corsOrigins: [],
    trustedProxies: [],
    role: 'all',
    databaseUrl: '',
    singleProcess: false,
    s3Bucket: '',
    s3Endpoint: '',
    s3PublicEndpoint: '',
    s3Region: 'us-east-1',
    s3Prefix: 'undertone/',
    s3Addressing: 'auto',
    secret: '',
    logLevel: 'info',
    drainSeconds: 0,
    finishSeconds: 5,
  });
});

test('an empty variable counts as unset', () => {
  const empty = Object.fromEntries(Object.values(SETTINGS).map(({ env }) => [env, '  ']));
  assert.deepEqual(readSettings(empty), readSettings({}));
});

test('common ways to write a value are accepted', () => {
  const settings = readSettings({
    SERVICE_LOG_LEVEL: 'DEBUG',
    SERVICE_PUBLIC_URL: 'https://voice.example.org/base/',
    SERVICE_CORS_ORIGINS: 'https://app.example.org, http://localhost:3000/',
    SERVICE_WORKERS: '3',
    SERVICE_HOST: '::1',
    SERVICE_STORAGE_LIMIT: '2 GiB',
    SERVICE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    SERVICE_WEIGHTS: 'my-own',
  });
  assert.equal(settings.storageLimit, 2 * 1024 ** 3);
  assert.deepEqual(settings.trustedProxies, ['10.0.0.0/8', '::1']);
  assert.equal(settings.weights, 'my-own');
  assert.equal(settings.logLevel, 'debug');
  assert.equal(settings.publicUrl, 'https://voice.example.org/base');
  assert.deepEqual(settings.corsOrigins, ['https://app.example.org', 'http://localhost:3000']);
  assert.equal(settings.workers, 3);
});

test('every invalid value is named, all at once', () => {
  const wrong = {
    SERVICE_HOST: 'two words',
    SERVICE_PORT: '70000',
    SERVICE_PUBLIC_URL: 'ftp://example.org',
    SERVICE_API_KEY: 'fifteen-letters',
    SERVICE_WEIGHTS: 'a/b',
    SERVICE_WORKERS: '0',
    SERVICE_QUEUE_LIMIT: '1.5',
    SERVICE_STORAGE_LIMIT: 'much',
    SERVICE_RATE_LIMIT: '-1',
    SERVICE_STREAM_LIMIT: 'many',
    SERVICE_CORS_ORIGINS: 'example.org',
    SERVICE_TRUSTED_PROXIES: '10.0.0.0/33',
    SERVICE_ROLE: 'boss',
    SERVICE_DATABASE_URL: 'mysql://host/name',
    SERVICE_S3_BUCKET: 'A',
    SERVICE_S3_ENDPOINT: 'host:9000',
    SERVICE_S3_PUBLIC_ENDPOINT: 's3',
    SERVICE_S3_REGION: 'the north',
    SERVICE_S3_PREFIX: '/../',
    SERVICE_S3_ADDRESSING: 'host',
    SERVICE_SECRET: 'short',
    SERVICE_LOG_LEVEL: 'loud',
    SERVICE_DRAIN_SECONDS: 'soon',
  };
  const problems = problemsOf(wrong);
  assert.equal(problems.length, Object.keys(wrong).length);
  for (const [i, name] of Object.keys(wrong).entries())
    assert.ok(problems[i]?.startsWith(`${name} must be `));
});

test('roles need the settings that processes share', () => {
  const both = { SERVICE_DATABASE_URL: 'postgres://db/voice', SERVICE_S3_BUCKET: 'voices' };
  const alone = { SERVICE_DATABASE_URL: both.SERVICE_DATABASE_URL };
  assert.throws(
    () => requireSharedRecordings(readSettings(alone)),
    /needs SERVICE_S3_BUCKET.*set SERVICE_SINGLE_PROCESS=true/,
  );
  for (const fine of [{}, both, { ...alone, SERVICE_SINGLE_PROCESS: 'true' }]) {
    requireSharedRecordings(readSettings(fine));
  }
  for (const SERVICE_ROLE of ['api', 'worker']) {
    const [problem] = problemsOf({ SERVICE_ROLE, SERVICE_DATABASE_URL: both.SERVICE_DATABASE_URL });
    assert.match(problem ?? '', /needs SERVICE_DATABASE_URL and SERVICE_S3_BUCKET/);
    assert.deepEqual(problemsOf({ SERVICE_ROLE, ...both }), []);
  }
  assert.match(
    problemsOf({ SERVICE_S3_ENDPOINT: 'http://s3:9000' })[0] ?? '',
    /SERVICE_S3_BUCKET must be set/,
  );
  assert.equal(readSettings({ SERVICE_S3_PREFIX: 'a/b' }).s3Prefix, 'a/b/');
});

test('secrets do not appear in error messages', () => {
  const wrong = { SERVICE_DATABASE_URL: 'mysql://me:hunter2@host/x', SERVICE_SECRET: 'hunter2' };
  assert.doesNotMatch(problemsOf(wrong).join(), /hunter2/);
});

test('an invalid key does not appear in the error message', () => {
  const [problem] = problemsOf({ SERVICE_API_KEY: 'my secret key' });
  assert.ok(problem && !problem.includes('secret'));
});

test('a file can hold a secret, and a wrong one is named without its content', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'undertone-secrets-'));
  const file = async (name: string, content: string) => {
    await writeFile(join(dir, name), content);
    return join(dir, name);
  };
  const settings = readSettings({
    SERVICE_API_KEY_FILE: await file('key', 'a-key-from-a-file\n'),
    SERVICE_DATABASE_URL_FILE: await file('database', 'postgres://db/voice\n'),
    SERVICE_SECRET_FILE: await file('secret', 'sixteen-characters'),
  });
  assert.equal(settings.apiKey, 'a-key-from-a-file');
  assert.equal(settings.databaseUrl, 'postgres://db/voice');
  assert.equal(settings.secret, 'sixteen-characters');
  assert.deepEqual(
    problemsOf({
      SERVICE_API_KEY: 'another-key-of-no-value',
      SERVICE_API_KEY_FILE: join(dir, 'key'),
      SERVICE_DATABASE_URL_FILE: join(dir, 'missing'),
      SERVICE_SECRET_FILE: await file('short', 'hunter2'),
    }),
    [
      'SERVICE_API_KEY_FILE and the setting itself are both set: keep one',
      'SERVICE_DATABASE_URL_FILE must name a readable file (ENOENT)',
      'SERVICE_SECRET must be 16 characters or more',
    ],
  );
  assert.deepEqual(unknownVariables({ SERVICE_API_KEY_FILE: 'x' }), []);
  await rm(dir, { recursive: true });
});

test('the operations port is another one', () => {
  assert.match(
    problemsOf({ SERVICE_PORT: '9000', SERVICE_OPERATIONS_PORT: '9000' })[0] ?? '',
    /SERVICE_OPERATIONS_PORT must be another port/,
  );
});

test('every setting has a description', () => {
  for (const { env, description } of Object.values(SETTINGS)) {
    assert.match(env, /^SERVICE_[A-Z0-9_]+$/);
    assert.ok(description.length > 10);
  }
});

test('a misspelt variable gets a warning with the nearest name; variables of the clients do not', () => {
  const warnings = unknownVariables({
    SERVICE_WEIGHT: 'open',
    SERVICE_PORT: '8080',
    SERVICE_URL: 'http://127.0.0.1:8080',
    SERVICE_ENTIRELY_DIFFERENT: '1',
    PATH: '/bin',
  });
  assert.deepEqual(warnings, [
    'SERVICE_WEIGHT is not a setting and has no effect. Did you mean SERVICE_WEIGHTS?',
    'SERVICE_ENTIRELY_DIFFERENT is not a setting and has no effect.',
  ]);
});
