import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { S3Client } from '@aws-sdk/client-s3';
import { dieWithParent } from './die-with-parent.ts';

/** Installed by `make test` from ../requirements.txt. */
const WEED = fileURLToPath(new URL('../../../.venv/bin/weed', import.meta.url));

/** For the environment variables in which S3 clients look for credentials. */
export const S3_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: 'undertone-test',
  AWS_SECRET_ACCESS_KEY: 'a-secret-of-no-value',
};

/** Set by global-setup.ts for all test files: the address of a running server. */
const SHARED = 'UNDERTONE_TEST_S3';

/** A real S3 (SeaweedFS) in a temporary folder. `remove` deletes everything. */
export class S3Server {
  readonly endpoint: string;
  /** Undefined for a shared server, which another process owns. */
  readonly #own: { readonly folder: string; readonly flags: readonly string[] } | undefined;
  #child: ChildProcess | undefined;

  private constructor(endpoint: string, own?: { folder: string; flags: string[] }) {
    this.endpoint = endpoint;
    this.#own = own;
  }

  /** The server of the whole test run, whose `remove` does nothing; a new one if only some test files are run. */
  static async shared(): Promise<S3Server> {
    const endpoint = process.env[SHARED];
    return endpoint === undefined ? S3Server.start() : new S3Server(endpoint);
  }

  /** Makes this the server that `shared` returns in child processes. */
  share(): void {
    process.env[SHARED] = this.endpoint;
  }

  static async start(): Promise<S3Server> {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-s3-'));
    const config = join(folder, 's3.json');
    const credentials = [
      { accessKey: S3_CREDENTIALS.AWS_ACCESS_KEY_ID, secretKey: S3_CREDENTIALS.AWS_SECRET_ACCESS_KEY },
    ];
    await writeFile(
      config,
      JSON.stringify({ identities: [{ name: 'test', credentials, actions: ['Admin'] }] }),
    );
    await mkdir(join(folder, 'data'));
    const names = ['master.port', 'master.port.grpc', 'volume.port', 'volume.port.grpc', 'filer.port'];
    names.push('filer.port.grpc', 's3.port', 's3.port.grpc');
    const ports = await freePorts(names.length);
    const flags = [
      ...names.map((name, i) => `-${name}=${ports[i]}`),
      ...['-s3.port.iceberg=0', '-s3.port.lance=0', `-s3.config=${config}`, `-dir=${join(folder, 'data')}`],
      ...['-s3', '-ip=127.0.0.1', '-ip.bind=127.0.0.1', '-master.volumeSizeLimitMB=64', '-volume.max=500'],
      ...['-master.telemetry=false', '-s3.autoCreateBucket=false'],
      // A server that starts again would wait for other masters.
      '-master.electionTimeout=1s',
    ];
    const endpoint = `http://127.0.0.1:${ports[names.indexOf('s3.port')]}`;
    const server = new S3Server(endpoint, { folder, flags });
    process.once('exit', server.#removeAtExit);
    await server.startServer();
    return server;
  }

  async startServer(): Promise<void> {
    if (this.#own === undefined) throw new Error('this server is not ours');
    const { folder, flags } = this.#own;
    const weed = existsSync(WEED) ? WEED : 'weed';
    const [command, args] = dieWithParent(weed, ['-logtostderr=true', 'server', ...flags]);
    const child = spawn(command, args, {
      cwd: folder,
      // It creates sockets in the temporary folder.
      env: { ...process.env, TMPDIR: folder },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#child = child;
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4_000);
    });
    child.on('error', (error) => {
      log += error.message;
    });
    while (!(await this.#answers())) {
      if (child.exitCode !== null || child.pid === undefined) {
        const hint = 'Install it with: pip install --requirement packages/testing/requirements.txt';
        throw new Error(`S3 did not start: ${log}\n${hint}`);
      }
      await sleep(50);
    }
  }

  /** It is gone at once: connections are refused. What it has stored stays. */
  async stopServer(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL'); // a graceful stop is slow
    await exit;
  }

  /** Creates an empty bucket and returns its name. */
  async newBucket(): Promise<string> {
    const { CreateBucketCommand } = await import('@aws-sdk/client-s3');
    const Bucket = `test-${Math.random().toString(36).slice(2, 12)}`;
    await this.#use((client) => client.send(new CreateBucketCommand({ Bucket })));
    return Bucket;
  }

  /** Sets the CORS rule from docs/SCALING.md. */
  async allowUploadsFrom(Bucket: string, origin: string): Promise<void> {
    const { PutBucketCorsCommand } = await import('@aws-sdk/client-s3');
    const rule = { AllowedOrigins: [origin], AllowedMethods: ['PUT'], ExposeHeaders: ['ETag'] };
    const CORSConfiguration = { CORSRules: [rule] };
    await this.#use((client) => client.send(new PutBucketCorsCommand({ Bucket, CORSConfiguration })));
  }

  async #use(work: (client: S3Client) => Promise<unknown>): Promise<void> {
    const { S3Client } = await import('@aws-sdk/client-s3');
    const client = new S3Client({ endpoint: this.endpoint, region: 'us-east-1', forcePathStyle: true });
    await work(client);
    client.destroy();
  }

  /** In case a test fails before it calls `remove`. */
  readonly #removeAtExit = () => {
    this.#child?.kill('SIGKILL');
    if (this.#own) rmSync(this.#own.folder, { recursive: true, force: true });
  };

  async remove(): Promise<void> {
    if (this.#own === undefined) return; // shared
    process.off('exit', this.#removeAtExit);
    await this.stopServer();
    await rm(this.#own.folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    return fetch(`${this.endpoint}/status`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) server.close();
  return ports;
}
