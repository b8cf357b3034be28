import { ASYNCH_PATHS, type AsynchResult } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { ServerProcess } from '@undertone/testing/server-process';
import { checkHealth, watchHealth } from '../support/health.ts';
import { longSilence } from '../support/long-silence.ts';
import { type Limits, rounded } from '../support/report.ts';

const SETTLED_WITHIN_MS = 600_000;

interface LongestOptions {
  readonly dataDir: string;
  /** Empty for the embedded database. */
  readonly databaseUrl: string;
  readonly hours: number;
  readonly limits: Limits;
}

/**
 * The longest recording with a prediction every second, processed and read back by the real server. It is silent and analysed
 * by channel, so that the model has nothing to do: what is measured is the size of the result.
 */
export async function classifyLongest({
  dataDir,
  databaseUrl,
  hours,
  limits,
}: LongestOptions): Promise<void> {
  const env = databaseUrl && { SERVICE_DATABASE_URL: databaseUrl, SERVICE_SINGLE_PROCESS: 'true' };
  const server = new ServerProcess(dataDir, { ...env });
  await server.start();
  const health = watchHealth(server.url);
  try {
    const file = await longSilence(hours * 3600);
    const client = new AsynchClient(server.url, server.key);
    const start = performance.now();
    const id = await client.upload(file, 1, { interval: 1, channels: 'separate' });
    await (await client.settled(id, SETTLED_WITHIN_MS, 200)).body?.cancel();
    const seconds = (performance.now() - start) / 1000;
    for (const query of ['', '&details=true']) {
      const readFrom = performance.now();
      const answer = await client.call(`${ASYNCH_PATHS.prediction}?request_id=${id}${query}`);
      const text = await answer.text();
      const readMs = performance.now() - readFrom;
      const steps = answer.status === 200 ? (JSON.parse(text) as AsynchResult).emotions.length : 0;
      console.log(
        `${hours} h every second${query && ', with details'}: ${answer.status}, ${steps} predictions, ${rounded(text.length / 1e6)} MB read in ${rounded(readMs)} ms.`,
      );
      limits.atLeast(`predictions of ${hours} h${query}`, steps, hours * 3600);
    }
    const seen = await health.stop();
    const megabytes = await server.peakMegabytes();
    console.log(
      `${rounded(file.length / 1e6)} MB uploaded and processed in ${rounded(seconds)} s; ${rounded(megabytes)} MB; /healthz at most ${rounded(seen.slowestMs)} ms.`,
    );
    checkHealth(limits, 'during the longest recording', seen);
  } finally {
    await server.end('SIGKILL');
  }
}
