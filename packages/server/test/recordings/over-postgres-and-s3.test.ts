// The asynch suites once more, with rows in PostgreSQL and parts that go straight to S3. What only the embedded stores do, and
// what is about the model alone, is not run again (`testEmbedded`).
import { after, test } from 'node:test';
import { runOver } from '@undertone/testing/app';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';

Object.assign(process.env, S3_CREDENTIALS);
const [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.start()]);
const SERVICE_S3_BUCKET = await s3.newBucket();
let apps = 0;
runOver(async () => ({
  SERVICE_DATABASE_URL: await cluster.newDatabase(),
  SERVICE_S3_BUCKET,
  SERVICE_S3_ENDPOINT: s3.endpoint,
  SERVICE_S3_PREFIX: `app-${++apps}/`,
}));

// Tests run one after another, so none begins before all are loaded: else those of one file could end, and everything with
// them, while the next is still loading.
const loaded = Promise.withResolvers<void>();
test('the suites are loaded', () => loaded.promise);
await import('./uploads.test.ts');
await import('./store-calls.test.ts');
await import('./processing.test.ts');
await import('../compat/second-generation.test.ts');
loaded.resolve();

// Last, when all apps are closed.
after(async () => {
  await s3.remove();
  await cluster.remove();
});
