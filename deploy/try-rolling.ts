// A rolling restart of two API processes and two workers behind haproxy, with the settings of deploy/kubernetes and under load through the
// SDK: no caller may see an error, and no stream reconnects more than once. Before it, one recording is followed through the logs of
// all processes. acceptance.sh runs it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { TEST_MODELS } from '@undertone/testing/paths';
import type { ServerProcess } from '@undertone/testing/server-process';
import { Cluster, SHIPPED } from './drill/cluster.ts';
import { followRecording } from './drill/follow.ts';
import { SdkLoad } from './drill/sdk-load.ts';

const drainSeconds = Number(SHIPPED.env['SERVICE_DRAIN_SECONDS']);
/** Longer than the drain and the 5 s that requests have by default. */
const SLOW_UPLOAD_SECONDS = drainSeconds + 8;
/** Haproxy gives each process in turn one of them. */
const SLOW_UPLOADS = 4;

// Small models in the API processes: 20 streams are about restarts here, not about the speed of this machine.
const cluster = await Cluster.start(3, { SERVICE_MODELS_DIR: TEST_MODELS });
try {
  const apis: [ServerProcess, ServerProcess] = [await cluster.startApi(0), await cluster.startApi(1)];
  await cluster.proxy.untilUp(0, 1);
  const worker = await followRecording(cluster, apis);
  const workers = [worker, await cluster.startWorker()];

  const load = new SdkLoad(cluster.proxy.url, cluster.key);
  load.start();
  await sleep(3_000);
  console.log(
    `\nRolling restart (drain ${drainSeconds} s, finish ${SHIPPED.env['SERVICE_FINISH_SECONDS']} s)`,
  );

  // As Kubernetes does it: a new process first; when it is ready, the old one gets SIGTERM.
  for (const [i, old] of apis.entries()) {
    await cluster.startApi((i + 2) % 3);
    await cluster.proxy.untilUp(0, 1, 2);
    for (let count = 0; count < SLOW_UPLOADS; count++) load.sendSlowly(SLOW_UPLOAD_SECONDS);
    await sleep(500);
    await stopped(`API process ${i + 1}`, old);
  }
  let requeued = 0;
  for (const [i, old] of workers.entries()) {
    await cluster.startWorker();
    // Each of the three workers takes one or two.
    const ids = await Promise.all(Array.from({ length: 4 }, () => load.sendLong()));
    await stopped(`worker ${i + 1}`, old);
    const lines = ids.flatMap((id) => old.linesAbout(id));
    requeued += lines.filter(({ msg }) => String(msg).startsWith('recording requeued')).length;
  }
  await load.stop();
  console.log(`  ${requeued} recordings in progress were passed on to another worker`);

  console.log(
    `  ${JSON.stringify(load.done)}; streams by reconnects: ${JSON.stringify(Object.fromEntries(load.reconnects))}; retries of streams: ${load.retriedStreams}`,
  );
  const stats = await cluster.proxy.stats();
  for (const [name, { connectionErrors, responseErrors, answered5xx }] of stats) {
    console.log(
      `  haproxy, ${name}: ${connectionErrors} connection errors, ${responseErrors} broken answers, ${answered5xx} answers 5xx`,
    );
  }
  assert.deepEqual(load.problems, []);
  assert.ok((load.reconnects.get(1) ?? 0) > 0, 'no stream was open when its process stopped');
  for (const [work, count] of Object.entries(load.done)) assert.ok(count > 0, work);
  assert.ok(requeued > 0, 'no recording was in progress when its worker stopped');
  console.log('No caller saw an error.');
} finally {
  await cluster.stop();
}

async function stopped(name: string, process: ServerProcess): Promise<void> {
  const start = performance.now();
  await process.end('SIGTERM');
  console.log(`  ${name} stopped in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  assert.equal(process.exitCode, 0, name);
}
