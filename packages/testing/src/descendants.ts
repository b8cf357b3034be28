import { readdir, readFile } from 'node:fs/promises';

/** The running processes that a process started, and theirs. */
export async function descendants(ancestor: number): Promise<{ pid: number; command: string }[]> {
  const parents = new Map<number, number>();
  const found: { pid: number; command: string }[] = [];
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    const [, command, parent] = /\((.*)\) [A-Y] (\d+)/.exec(stat) ?? [];
    if (command === undefined) continue;
    parents.set(Number(name), Number(parent));
    found.push({ pid: Number(name), command });
  }
  const descends = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent === ancestor || (parent !== undefined && descends(parent));
  };
  return found.filter(({ pid }) => descends(pid));
}
