import { setTimeout as sleep } from 'node:timers/promises';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { ServerProcess } from '@undertone/testing/server-process';
import { longWav } from '@undertone/testing/wav';
import { type Limits, rounded } from '../support/report.ts';

const STOP_LIMIT_SECONDS = 15;
/** Longer than an outage needs to be noticed. */
const HANGS_BEFORE_MS = 3_000;
/** Longer than the lease of a recording. */
const HANGS_AFTER_MS = 7_000;

/** The server is stopped, and started again, while PostgreSQL hangs and a recording is being processed. */
export async function stopWhileHanging(dataDir: string, limits: Limits): Promise<void> {
  const cluster = await PostgresCluster.start();
  const url = await cluster.newDatabase();
  const server = new ServerProcess(dataDir, { SERVICE_DATABASE_URL: url, SERVICE_SINGLE_PROCESS: 'true' });
  try {
    await server.start();
    const client = new AsynchClient(server.url, server.key);
    const id = await client.upload(longWav(900));
    const ask = async () => (await cluster.query('SELECT * FROM undertone.requests', url))[0] ?? {};
    while ((await ask())['state'] !== 'processing') await sleep(20);
    cluster.pause();
    await sleep(HANGS_BEFORE_MS);
    const start = performance.now();
    await server.end('SIGTERM');
    const seconds = (performance.now() - start) / 1000;
    const code = server.exitCode;
    await Promise.all([server.start(), sleep(HANGS_AFTER_MS).then(() => cluster.resume())]);
    const { emotions } = await client.result(id);
    const { failed_attempts: attempts } = await ask();
    console.log(
      `SIGTERM while PostgreSQL hangs: stopped after ${rounded(seconds)} s with exit code ${code}; afterwards ${emotions.length} predictions, ${attempts} attempts counted.`,
    );
    limits.atMost('seconds to stop while PostgreSQL hangs', seconds, STOP_LIMIT_SECONDS);
    limits.atMost('exit code after a stop while PostgreSQL hangs', code ?? Number.NaN, 0);
    limits.atMost('attempts counted after a stop while PostgreSQL hangs', Number(attempts), 0);
  } finally {
    cluster.resume();
    await server.end('SIGKILL');
    await cluster.remove();
  }
}
