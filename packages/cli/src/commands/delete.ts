import type { Command } from 'commander';
import { addServerFlags, connect, parseRequestId, stopsAll } from '../client.ts';
import { explain } from '../user-error.ts';

const MORE = `
The audio and the result are deleted immediately; processing stops. Without this
command the server deletes everything 24 hours after the start of the upload.
The exit code is 3 if some requests could not be deleted.

Examples:
  undertone delete 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10
  undertone list --all --json | jq -r '.requests[].request_id' |
    xargs undertone delete`;

export function addDelete(program: Command): void {
  const command = program
    .command('delete')
    .summary('delete uploaded recordings and their results')
    .description('Deletes uploaded recordings and their results from the server.')
    .argument('<id...>', 'request IDs that `undertone upload` printed', (text, ids: string[] = []) => [
      ...ids,
      parseRequestId(text),
    ]);
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (ids: string[]) => {
      const client = connect(command);
      let failed = 0;
      for (const id of ids) {
        try {
          await client.asynch.delete(id);
          process.stderr.write(`Deleted ${id}.\n`);
        } catch (error) {
          if (ids.length === 1 || stopsAll(error)) throw error;
          failed++;
          process.stderr.write(`undertone: ${id}: ${explain(error)}\n`);
        }
      }
      if (failed > 0) process.exitCode = failed < ids.length ? 3 : 1;
    });
}
