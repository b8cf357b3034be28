import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStores } from '@undertone/server/stores';
import { ROOT } from '@undertone/testing/paths';
import { freePort } from '@undertone/testing/ready';
import { ServerProcess } from '@undertone/testing/server-process';
import { SharedStores } from '@undertone/testing/shared-stores';
import { parseAllDocuments } from 'yaml';
import { Haproxy, type Probe } from './haproxy.ts';

/** What deploy/kubernetes/api.yaml ships. */
export const SHIPPED = readShipped();

/** A real PostgreSQL, S3 and haproxy. API processes run on the ports that haproxy knows; workers on any. */
export class Cluster {
  readonly stores: SharedStores;
  readonly proxy: Haproxy;
  /** Stored in the database, not in the settings: it has to be looked up. */
  readonly key: string;
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #apiEnv: Readonly<Record<string, string>>;
  readonly #ports: readonly number[];
  readonly #processes: ServerProcess[] = [];

  /** `apiEnv`: more settings of the API processes. */
  static async start(ports: number, apiEnv: Readonly<Record<string, string>> = {}): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-drill-'));
    const stores = await SharedStores.start();
    const opened = await openStores({ dataDir: folder, databaseUrl: stores.databaseUrl }, { kind: 'local' });
    const { key } = await opened.keys.create('drill');
    await opened.close();
    const free: number[] = [];
    while (free.length < ports) free.push(await freePort());
    const proxy = await Haproxy.start(folder, free, SHIPPED.probe);
    return new Cluster({ stores, proxy, key, folder, ports: free, apiEnv });
  }

  private constructor(
    parts: Pick<Cluster, 'stores' | 'proxy' | 'key' | 'folder'> & {
      ports: number[];
      apiEnv: Readonly<Record<string, string>>;
    },
  ) {
    this.stores = parts.stores;
    this.proxy = parts.proxy;
    this.key = parts.key;
    this.folder = parts.folder;
    this.#ports = parts.ports;
    this.#apiEnv = parts.apiEnv;
    this.#env = {
      ...parts.stores.env,
      SERVICE_API_KEY: '',
      SERVICE_LOG_LEVEL: 'info',
      SERVICE_TRUSTED_PROXIES: '127.0.0.1',
      SERVICE_WEBHOOK_PRIVATE: 'true',
      // Four processes and the load share this machine.
      SERVICE_WORKERS: '1',
    };
  }

  /** Without an index it is one that haproxy does not know. */
  async startApi(index?: number): Promise<ServerProcess> {
    const port = index === undefined ? {} : { SERVICE_PORT: String(this.#ports[index]) };
    return this.#start({ ...SHIPPED.env, ...this.#apiEnv, ...port });
  }

  async startWorker(): Promise<ServerProcess> {
    return this.#start({ SERVICE_ROLE: 'worker' });
  }

  async stop(): Promise<void> {
    this.proxy.stop();
    await Promise.all(this.#processes.map((process) => process.end('SIGKILL')));
    await this.stores.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #start(env: Record<string, string>): Promise<ServerProcess> {
    const process = new ServerProcess(this.folder, { ...this.#env, ...env });
    this.#processes.push(process);
    await process.start();
    return process;
  }
}

interface Container {
  readonly env: readonly { name: string; value: string }[];
  readonly readinessProbe: Probe;
}

function readShipped() {
  const text = readFileSync(join(ROOT, 'deploy/kubernetes/api.yaml'), 'utf8');
  const [deployment] = parseAllDocuments(text).map((document) => document.toJS());
  const { containers, terminationGracePeriodSeconds } = deployment.spec.template.spec;
  const [{ env, readinessProbe }] = containers as [Container];
  return {
    probe: readinessProbe,
    graceSeconds: Number(terminationGracePeriodSeconds),
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
  };
}
