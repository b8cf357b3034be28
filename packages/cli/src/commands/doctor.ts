import type { Command } from 'commander';
import { paint } from '../bars.ts';
import { CHECKED_SETTINGS, CHECKS } from '../checks.ts';
import type { Finding } from '../finding.ts';
import { readDatabaseUrl, readFlags, settingFlag } from '../settings-flags.ts';

const MORE = `
Each line says ok, warning or error, and how to fix what is wrong. An error makes the exit code 1. Nothing is changed on the
machine. PostgreSQL and S3 are asked only where SERVICE_DATABASE_URL and SERVICE_S3_BUCKET name them; in the bucket two small
objects are made and erased.`;

const COLOURS = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const STATE_WIDTH = 9;
const NAME_WIDTH = 13;

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .summary('check this machine, and say how to fix what is missing')
    .description('Checks whether this machine has what the server needs, and says how to fix what it lacks.')
    .addHelpText('after', MORE);
  for (const name of CHECKED_SETTINGS) command.addOption(settingFlag(name));
  command.action(async () => {
    const settings = { ...readFlags(command, CHECKED_SETTINGS), databaseUrl: readDatabaseUrl() };
    let errors = 0;
    for (const [name, check] of Object.entries(CHECKS)) {
      const finding = await check(settings);
      if (finding === null) continue;
      if (finding.state === 'error') errors++;
      print(name, finding);
    }
    if (errors > 0) process.exitCode = 1;
    const last =
      errors === 0 ? 'Ready: `undertone serve`.' : `Fix ${errors} problem${errors === 1 ? '' : 's'} first.`;
    process.stdout.write(`\n${last}\n`);
  });
}

function print(name: string, { state, found, fix }: Finding): void {
  const label = paint(COLOURS[state], state) + ' '.repeat(STATE_WIDTH - state.length);
  process.stdout.write(`${label}${name.padEnd(NAME_WIDTH)}${found}\n`);
  if (fix !== undefined) process.stdout.write(`${' '.repeat(STATE_WIDTH + NAME_WIDTH)}${fix}\n`);
}
