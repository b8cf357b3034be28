import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';

/** A PostgreSQL and an S3 of the bench's own, gone with `stop`. */
export class SharedStores {
  readonly cluster: PostgresCluster;
  readonly databaseUrl: string;
  /** What every process of the service needs to know of them. */
  readonly env: Readonly<Record<string, string>>;
  readonly #s3: S3Server;

  static async start(): Promise<SharedStores> {
    Object.assign(process.env, S3_CREDENTIALS);
    const [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.start()]);
    return new SharedStores(cluster, s3, await cluster.newDatabase(), await s3.newBucket());
  }

  private constructor(cluster: PostgresCluster, s3: S3Server, databaseUrl: string, bucket: string) {
    this.cluster = cluster;
    this.#s3 = s3;
    this.databaseUrl = databaseUrl;
    this.env = {
      SERVICE_DATABASE_URL: databaseUrl,
      SERVICE_S3_BUCKET: bucket,
      SERVICE_S3_ENDPOINT: s3.endpoint,
    };
  }

  async stop(): Promise<void> {
    await this.#s3.remove();
    await this.cluster.remove();
  }
}
