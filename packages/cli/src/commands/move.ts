import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { explainStorage } from '../checks.ts';
import { readFlags, requireDatabaseUrl, settingFlag } from '../settings-flags.ts';
import { UserError } from '../user-error.ts';

const MORE = `
Nothing in the data folder is changed, and what PostgreSQL has already stays as it is: it can be run again. Recordings that are
not finished are not copied. To lose none of them, stop uploads, wait until \`undertone_asynch_requests\` has none that are
uploading, queued or processing, stop the server, move, and start it with SERVICE_DATABASE_URL.

Example:
  SERVICE_DATABASE_URL=postgres://user:password@host/name undertone move --data-dir .undertone`;

export function addMove(program: Command): void {
  const command = program
    .command('move')
    .summary('copy keys and results from the data folder to PostgreSQL')
    .description(
      'Copies keys and unexpired results from the data folder to the database in SERVICE_DATABASE_URL.',
    )
    .addOption(settingFlag('dataDir'))
    .addHelpText('after', MORE)
    .action(async () => {
      const { dataDir } = readFlags(command, ['dataDir']);
      const url = requireDatabaseUrl();
      const { DATABASE_FILE } = await import('@undertone/server/stores');
      if (!existsSync(join(dataDir, DATABASE_FILE))) {
        throw new UserError(
          `There is no ${DATABASE_FILE} in ${dataDir}. Name the data folder with --data-dir.`,
        );
      }
      const { moveToPostgres } = await import('@undertone/server/stores/postgres/move');
      try {
        const { keys, requests, unfinished } = await moveToPostgres({ dataDir, url });
        process.stdout.write(`Copied ${count(keys, 'key')} and ${count(requests, 'past request')}.\n`);
        if (unfinished > 0) {
          process.stderr.write(
            `${count(unfinished, 'recording')} not finished yet: not copied. Let the server finish, then run this again.\n`,
          );
        }
      } catch (error) {
        throw await explainStorage(error, dataDir, url);
      }
    });
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
