/** The command wrapped so that its process ends with ours, even when ours is killed. */
export function dieWithParent(program: string, args: readonly string[]): [string, string[]] {
  if (process.platform !== 'linux') return [program, [...args]];
  return ['setpriv', ['--pdeathsig', 'SIGQUIT', program, ...args]];
}
