import { PostgresCluster } from './postgres-cluster.ts';
import { S3_CREDENTIALS, S3Server } from './s3-server.ts';

/** A PostgreSQL and an S3 of our own, removed by `stop`. */
export class SharedStores {
  readonly cluster: PostgresCluster;
  readonly s3: S3Server;
  readonly databaseUrl: string;
  /** The settings that every process of the service needs. */
  readonly env: Readonly<Record<string, string>>;

  static async start(): Promise<SharedStores> {
    Object.assign(process.env, S3_CREDENTIALS);
    const [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.start()]);
    return new SharedStores(cluster, s3, await cluster.newDatabase(), await s3.newBucket());
  }

  private constructor(cluster: PostgresCluster, s3: S3Server, databaseUrl: string, bucket: string) {
    this.cluster = cluster;
    this.s3 = s3;
    this.databaseUrl = databaseUrl;
    this.env = {
      SERVICE_DATABASE_URL: databaseUrl,
      SERVICE_S3_BUCKET: bucket,
      SERVICE_S3_ENDPOINT: s3.endpoint,
    };
  }

  async stop(): Promise<void> {
    await this.s3.remove();
    await this.cluster.remove();
  }
}
