const PERIOD_MS = 250;
const STOPPED_MS = 200;

/** Lets a process run for a fifth of the time, until the returned function is called. */
export function starve(pid: number): () => void {
  let over = false;
  const timer = setInterval(() => {
    process.kill(pid, 'SIGSTOP');
    setTimeout(() => !over && process.kill(pid, 'SIGCONT'), STOPPED_MS);
  }, PERIOD_MS);
  return () => {
    over = true;
    clearInterval(timer);
    process.kill(pid, 'SIGCONT');
  };
}
