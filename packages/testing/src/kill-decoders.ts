import { setTimeout as sleep } from 'node:timers/promises';
import { descendants } from './descendants.ts';

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
  const processes = await descendants(ancestor);
  return processes.filter(({ command }) => command === 'ffmpeg').map(({ pid }) => pid);
}
