import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openS3 } from '@undertone/server';
import type { Victim } from '@undertone/testing/crashes';
import type { Random } from '@undertone/testing/random';
import { ServerProcess } from '@undertone/testing/server-process';
import { SharedStores } from '@undertone/testing/shared-stores';

/** Two API processes and two workers over one PostgreSQL and one S3. Only S3 never fails. */
export class SeveralMachines implements Victim {
  readonly #stores: SharedStores;
  readonly #dataDir: string;
  readonly #apis: readonly ServerProcess[];
  readonly #workers: readonly ServerProcess[];
  #calls = 0;

  static async prepare(env: Record<string, string> = {}): Promise<SeveralMachines> {
    const dataDir = await mkdtemp(join(tmpdir(), 'undertone-recovery-'));
    return new SeveralMachines(await SharedStores.start(), dataDir, env);
  }

  private constructor(stores: SharedStores, dataDir: string, env: Record<string, string>) {
    this.#stores = stores;
    this.#dataDir = dataDir;
    const shared = { ...stores.env, ...env, SERVICE_WORKERS: '1' };
    const two = (SERVICE_ROLE: string) =>
      [1, 2].map(() => new ServerProcess(dataDir, { ...shared, SERVICE_ROLE }));
    this.#apis = two('api');
    this.#workers = two('worker');
  }

  get key(): string {
    return this.#apis[0]?.key ?? '';
  }

  /** The API processes in turn, as behind a load balancer. */
  get url(): string {
    return this.#apis[this.#calls++ % this.#apis.length]?.url ?? '';
  }

  async start(): Promise<void> {
    await Promise.all([...this.#apis, ...this.#workers].map((process) => process.start()));
  }

  async fail(random: Random): Promise<string> {
    const fault = random.pick(['worker', 'api', 'postgres']);
    const { cluster } = this.#stores;
    if (fault === 'postgres') {
      await cluster.stopServer();
      await cluster.startServer();
    } else {
      const process = random.pick(fault === 'api' ? this.#apis : this.#workers);
      await process.end('SIGKILL');
      await process.start();
    }
    return fault;
  }

  async left(): Promise<string[]> {
    const { SERVICE_S3_BUCKET: s3Bucket = '', SERVICE_S3_ENDPOINT: s3Endpoint = '' } = this.#stores.env;
    const store = await openS3({ s3Bucket, s3Endpoint });
    try {
      return await store.groups();
    } finally {
      store.close();
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#apis, ...this.#workers].map((process) => process.end('SIGKILL')));
    await this.#stores.stop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }
}
