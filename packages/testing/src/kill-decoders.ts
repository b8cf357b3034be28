import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Kills this many ffmpeg processes of a server in mid-recording, each as soon as it has read a little. */
export async function killDecoders(server: number, count: number): Promise<void> {
  const killed = new Set<number>();
  while (killed.size < count) {
    for (const pid of await ffmpegsOf(server)) {
      if (killed.has(pid) || killed.size === count) continue;
      await sleep(50); // in mid-recording
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        continue; // it has ended
      }
      killed.add(pid);
    }
    await sleep(2);
  }
}

/** Processes named ffmpeg among the descendants of a process. */
async function ffmpegsOf(ancestor: number): Promise<number[]> {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    const [, command, parent] = /\((.*)\) [A-Y] (\d+)/.exec(stat) ?? [];
    parents.set(Number(name), Number(parent));
    if (command === 'ffmpeg') found.push(Number(name));
  }
  const descends = (pid: number): boolean =>
    pid === ancestor || (parents.has(pid) && descends(parents.get(pid) ?? 0));
  return found.filter(descends);
}
