import type { Command } from 'commander';
import { addServerFlags, connect } from '../client.ts';

const MORE = `
The audio and the result are deleted immediately; processing stops. Without this command the server deletes everything 24 hours
after the start of the upload.

Example:
  undertone delete 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10`;

export function addDelete(program: Command): void {
  const command = program
    .command('delete')
    .summary('delete an uploaded recording and its result')
    .description('Deletes an uploaded recording and its result from the server.')
    .argument('<id>', 'the request ID that `undertone upload` printed');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (id: string) => {
      await connect(command).asynch.delete(id);
      process.stderr.write(`Deleted ${id}.\n`);
    });
}
