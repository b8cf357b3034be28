import type { Contents } from '@undertone/server/stores/backup/backup';
import type { Command } from 'commander';
import { countOf } from '../batch.ts';
import { explainStorage } from '../checks.ts';
import { readDatabaseUrl, readFlags, S3_SETTINGS, settingFlag } from '../settings-flags.ts';

const BACKUP_HELP = `
The server may be running. The file has hashes of keys, results and the signing
secret: only you can read it; keep it no longer than 24 hours, or use
--keys-only. Audio is not part of it.

Example:
  undertone backup undertone-2026-11-17.backup`;

const RESTORE_HELP = `
Stop all servers and workers first. The database must be empty. Recordings that
were waiting are queued again if their audio is still in the data folder or the
bucket; otherwise they fail, and their webhook says so. Webhooks that were
delivered after the backup are sent again, with the same id.

Example:
  undertone restore undertone-2026-11-17.backup`;

export function addBackup(program: Command): void {
  const command = program
    .command('backup <file>')
    .summary('write keys, requests and results to a file')
    .description('Writes keys, requests, results, pending webhooks and the signing secret to FILE.')
    .option('--keys-only', 'leave out requests, results and webhooks')
    .addOption(settingFlag('dataDir'))
    .addHelpText('after', BACKUP_HELP)
    .action(async (file: string, { keysOnly = false }: { keysOnly?: boolean }) => {
      const { dataDir } = readFlags(command, ['dataDir']);
      const databaseUrl = readDatabaseUrl();
      const { backUp } = await import('@undertone/server/stores/backup/backup');
      try {
        const contents = await backUp({ file, dataDir, databaseUrl, keysOnly });
        process.stdout.write(`Wrote ${describe(contents)} to ${file}.\n`);
        if (contents.unfinished > 0) {
          process.stderr.write(
            `${countOf(contents.unfinished, 'recording')} not finished: the audio is not part of the backup.\n`,
          );
        }
      } catch (error) {
        throw await explainStorage(error, dataDir, databaseUrl);
      }
    });
}

export function addRestore(program: Command): void {
  const command = program
    .command('restore <file>')
    .summary('restore a backup into an empty database')
    .description('Restores FILE into the data folder, or into the empty database in SERVICE_DATABASE_URL.')
    .addOption(settingFlag('dataDir'))
    .addHelpText('after', RESTORE_HELP);
  for (const name of S3_SETTINGS) command.addOption(settingFlag(name));
  command.action(async (file: string) => {
    const settings = readFlags(command, ['dataDir', ...S3_SETTINGS]);
    const databaseUrl = readDatabaseUrl();
    const [{ restore }, { openBlobs }] = await Promise.all([
      import('@undertone/server/stores/backup/restore'),
      import('@undertone/server/stores'),
    ]);
    try {
      const { blobs, close } = await openBlobs(settings);
      const restored = await restore({ file, dataDir: settings.dataDir, databaseUrl, blobs }).finally(close);
      process.stdout.write(`Restored ${describe(restored)}.\n`);
      if (restored.lost === 0) return;
      process.stderr.write(
        `${countOf(restored.lost, 'recording')} failed, because the audio is gone. Clients must send it again.\n`,
      );
      process.exitCode = 3;
    } catch (error) {
      throw await explainStorage(error, settings.dataDir, databaseUrl);
    }
  });
}

function describe({ keys, requests, webhooks }: Contents): string {
  return `${countOf(keys, 'key')}, ${countOf(requests, 'request')} and ${countOf(webhooks, 'pending webhook')}`;
}
