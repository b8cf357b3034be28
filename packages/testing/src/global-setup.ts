// One PostgreSQL and one S3 for the whole test run: node --test-global-setup. Test files get their own databases and buckets.
import { PostgresCluster } from './postgres-cluster.ts';
import { S3Server } from './s3-server.ts';

let remove: () => Promise<unknown>;

export async function globalSetup(): Promise<void> {
  const [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.start()]);
  remove = () => Promise.all([cluster.remove(), s3.remove()]);
  cluster.share();
  s3.share();
}

export async function globalTeardown(): Promise<void> {
  await remove();
}
