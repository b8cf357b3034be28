// Polls /healthz every 100 ms from a separate process, so that the load of the clients does not distort the result.
// `watchHealth` starts this file as that process.
import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';
import type { Limits } from './report.ts';

const EVERY_MS = 100;
export const HEALTH_LIMIT_MS = 250;

export interface Health {
  readonly asked: number;
  /** Answers other than 200, or none. */
  readonly failed: number;
  readonly slowestMs: number;
}

/** `lap` returns the results since the last one, `stop` those that are left. */
export function watchHealth(url: string): { lap(): Promise<Health>; stop(): Promise<Health> } {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? '') as Health;
  return {
    lap: () => {
      child.stdin.write('\n');
      return next();
    },
    stop: () => {
      child.stdin.end();
      return next();
    },
  };
}

export function checkHealth(limits: Limits, when: string, { asked, failed, slowestMs }: Health): void {
  limits.atLeast(`/healthz polls ${when}`, asked, 1, ' times');
  if (failed > 0) limits.miss(`/healthz ${when}: ${failed} of ${asked} polls failed`);
  limits.atMost(`/healthz ${when}`, slowestMs, HEALTH_LIMIT_MS, ' ms');
}

if (import.meta.main) {
  const url = process.argv[2] + PATHS.health;
  try {
    // Its own waits for a core are not the server's.
    setPriority(constants.priority.PRIORITY_HIGHEST);
  } catch {
    // Only root may.
  }
  let stopped = false;
  let seen = { asked: 0, failed: 0, slowestMs: 0 };
  const commands = createInterface(process.stdin);
  commands.on('line', report);
  commands.once('close', () => {
    stopped = true;
  });
  const pending = new Set<Promise<void>>();
  // The first call opens the connection and loads the client, so it does not count.
  await fetch(url).then((response) => response.text());
  while (!stopped) {
    const asking = ask().finally(() => pending.delete(asking));
    pending.add(asking);
    await sleep(EVERY_MS);
  }
  await Promise.all(pending);
  report();

  function report(): void {
    console.log(JSON.stringify(seen));
    seen = { asked: 0, failed: 0, slowestMs: 0 };
  }

  async function ask(): Promise<void> {
    const start = performance.now();
    const ok = await fetch(url).then(
      async (response) => (await response.text()) !== '' && response.ok,
      () => false,
    );
    seen.asked++;
    if (!ok) seen.failed++;
    seen.slowestMs = Math.max(seen.slowestMs, performance.now() - start);
  }
}
