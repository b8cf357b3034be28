import type { Command } from 'commander';
import { explainStorage } from '../checks.ts';
import { requireDatabaseUrl } from '../settings-flags.ts';

const MORE = `
Every start of the server does the same. Run this command if the server's
database user may not change tables, or before an upgrade: processes of the
previous version continue to work. It is safe to run it several times at once.

Example:
  SERVICE_DATABASE_URL=postgres://user:password@host/name undertone migrate`;

export function addMigrate(program: Command): void {
  program
    .command('migrate')
    .summary('migrate the PostgreSQL database')
    .description('Migrates the database in SERVICE_DATABASE_URL to the schema of this version.')
    .addHelpText('after', MORE)
    .action(async () => {
      const url = requireDatabaseUrl();
      const { migratePostgres } = await import('@undertone/server/stores/postgres/migrate');
      try {
        const { from, to } = await migratePostgres(url);
        const what =
          from === to ? `is up to date: schema ${to}` : `was migrated from schema ${from} to ${to}`;
        process.stdout.write(`The database ${what}.\n`);
      } catch (error) {
        throw await explainStorage(error, '', url);
      }
    });
}
