import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { countOf } from '../batch.ts';
import { explainStorage } from '../checks.ts';
import { readFlags, requireDatabaseUrl, settingFlag } from '../settings-flags.ts';
import { UserError } from '../user-error.ts';

const MORE = `
The data folder is not changed, and existing rows in PostgreSQL are kept, so you
can run it again. Unfinished recordings are not copied; the exit code is then 3.
To lose none: stop uploads, wait until \`undertone_asynch_requests\` shows none
that are uploading, queued or processing, stop the server, run this command, and
start the server with SERVICE_DATABASE_URL.

Example:
  export SERVICE_DATABASE_URL=postgres://user:password@host/name
  undertone move --data-dir .undertone`;

export function addMove(program: Command): void {
  const command = program
    .command('move')
    .summary('copy keys and results from the data folder to PostgreSQL')
    .description(
      'Copies keys with their owners and limits, unexpired results and webhooks still to be sent from the data folder to the database in SERVICE_DATABASE_URL.',
    )
    .addOption(settingFlag('dataDir'))
    .addHelpText('after', MORE)
    .action(async () => {
      const { dataDir } = readFlags(command, ['dataDir']);
      const url = requireDatabaseUrl();
      const { DATABASE_FILE } = await import('@undertone/server/stores');
      if (!existsSync(join(dataDir, DATABASE_FILE))) {
        throw new UserError(
          `There is no ${DATABASE_FILE} in ${dataDir}. Set the data folder with --data-dir.`,
        );
      }
      const { moveToPostgres } = await import('@undertone/server/stores/backup/move');
      try {
        const { keys, requests, webhooks, unfinished } = await moveToPostgres({ dataDir, url });
        process.stdout.write(
          `Copied ${countOf(keys, 'key')}, ${countOf(requests, 'past request')} and ${countOf(webhooks, 'pending webhook')}.\n`,
        );
        if (unfinished > 0) {
          process.stderr.write(
            `${countOf(unfinished, 'recording')} not copied, because not finished. Let the server finish, then run this again.\n`,
          );
          process.exitCode = 3;
        }
      } catch (error) {
        throw await explainStorage(error, dataDir, url);
      }
    });
}
