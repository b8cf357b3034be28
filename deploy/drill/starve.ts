import type { ServerProcess } from '@undertone/testing/server-process';

const PERIOD_MS = 250;
const STOPPED_MS = 200;

/** Lets a process run for a fifth of the time, until the returned function is called. */
export function starve(victim: ServerProcess): () => void {
  const signal = (name: NodeJS.Signals) => victim.isAlive && process.kill(victim.pid, name);
  const timer = setInterval(() => {
    signal('SIGSTOP');
    setTimeout(() => signal('SIGCONT'), STOPPED_MS);
  }, PERIOD_MS);
  return () => {
    clearInterval(timer);
    signal('SIGCONT');
  };
}
