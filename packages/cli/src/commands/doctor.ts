import type { Command } from 'commander';
import { paint } from '../bars.ts';
import { countOf } from '../batch.ts';
import { CHECKED_SETTINGS, CHECKS } from '../checks.ts';
import { readDatabaseUrl, readFlags, settingFlag } from '../settings-flags.ts';
import type { Finding } from '../store-checks.ts';

const MORE = `
Each line says ok, warning or error, and how to fix the problem. The exit code is 1 if there is an error. Nothing is changed on
this machine. PostgreSQL and S3 are checked only if SERVICE_DATABASE_URL and SERVICE_S3_BUCKET are set; the check writes two small
objects to the bucket and deletes them.`;

const COLOURS = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const STATE_WIDTH = 9;
const NAME_WIDTH = 13;

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .summary('check this machine, and say how to fix it')
    .description(
      'Checks whether this machine is ready to run the server, and says how to fix what is missing.',
    )
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
    const last = errors === 0 ? 'Ready: `undertone serve`.' : `Fix ${countOf(errors, 'problem')} first.`;
    process.stdout.write(`\n${last}\n`);
  });
}

function print(name: string, { state, found, fix }: Finding): void {
  const label = paint(COLOURS[state], state) + ' '.repeat(STATE_WIDTH - state.length);
  process.stdout.write(`${label}${name.padEnd(NAME_WIDTH)}${found}\n`);
  if (fix !== undefined) process.stdout.write(`${' '.repeat(STATE_WIDTH + NAME_WIDTH)}${fix}\n`);
}
