import type { Command } from 'commander';
import { type AsynchFlags, asynchClient, asynchUrlFlag } from '../asynch-client.ts';

const MORE = `
The audio, its parts and its result are gone at once; a recording that is being processed is stopped. Without it everything is
gone 24 hours after it was made.

Example:
  undertone delete 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10`;

export function addDelete(program: Command): void {
  program
    .command('delete')
    .summary('make the service forget a recording and its result')
    .description('Makes the service forget an uploaded recording and its result now.')
    .argument('<id>', 'the identifier that `undertone upload` printed')
    .addOption(asynchUrlFlag())
    .addHelpText('after', MORE)
    .action(async (id: string, flags: AsynchFlags) => {
      await asynchClient(flags).asynch.delete(id);
      process.stderr.write(`Deleted ${id}.\n`);
    });
}
