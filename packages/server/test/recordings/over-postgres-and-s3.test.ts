// Runs the suites for long recordings over PostgreSQL and S3, where parts are uploaded directly to S3. Tests of the embedded
// stores and of the model alone are not repeated (`testEmbedded`).
import { after, test } from 'node:test';
import { runOver } from '@undertone/testing/app';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';

Object.assign(process.env, S3_CREDENTIALS);
const [cluster, s3] = await Promise.all([PostgresCluster.shared(), S3Server.shared()]);
const SERVICE_S3_BUCKET = await s3.newBucket();
let apps = 0;
runOver(async () => ({
  SERVICE_DATABASE_URL: await cluster.newDatabase(),
  SERVICE_S3_BUCKET,
  SERVICE_S3_ENDPOINT: s3.endpoint,
  SERVICE_S3_PREFIX: `app-${++apps}/`,
}));

// No test starts before all files are loaded: otherwise the tests of one file could finish, and end the run, while the
// next file is loading.
const loaded = Promise.withResolvers<void>();
test('the suites are loaded', () => loaded.promise);
await import('./uploads.test.ts');
await import('./store-calls.test.ts');
await import('./processing.test.ts');
await import('../compat/second-generation.test.ts');
loaded.resolve();

// Last, after all apps are closed.
after(async () => {
  await s3.remove();
  await cluster.remove();
});
