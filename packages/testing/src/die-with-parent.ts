/** A command whose process does not outlive ours, even when ours is killed. */
export function endingWithUs(program: string, args: readonly string[]): [string, string[]] {
  if (process.platform !== 'linux') return [program, [...args]];
  return ['setpriv', ['--pdeathsig', 'SIGQUIT', program, ...args]];
}
