import type { Command } from 'commander';
import { paint } from '../bars.ts';
import { CHECKS, type CheckUp, FLAGS } from '../checks/index.ts';
import { readFlags, settingFlag } from '../settings-flags.ts';

const MORE = `
Needed things that are missing are marked with a cross and make the exit code 1; useful ones are marked with an
exclamation mark. Nothing is changed on the machine and nothing leaves it.`;

const MARKS = { well: paint('green', '✓'), useful: paint('yellow', '!'), needed: paint('red', '✗') };

export function addDoctor(program: Command): void {
  const doctor = program
    .command('doctor')
    .summary('say what this machine lacks, and how to get it')
    .description('Looks whether this machine has what the service needs, and says how to get what it lacks.')
    .addHelpText('after', MORE);
  for (const name of FLAGS) doctor.addOption(settingFlag(name));
  doctor.action(async () => {
    const settings = readFlags(doctor, FLAGS);
    let missing = 0;
    for (const [name, check] of Object.entries(CHECKS)) {
      const result = await check(settings);
      if (result.state === 'needed') missing++;
      print(name, result);
    }
    process.stdout.write(missing === 0 ? '\nReady: `undertone serve`.\n' : `\n${missing} to mend first.\n`);
    if (missing > 0) process.exitCode = 1;
  });
}

function print(name: string, result: CheckUp): void {
  process.stdout.write(`${MARKS[result.state]} ${name.padEnd(12)} ${result.found}\n`);
  if (result.state !== 'well') process.stdout.write(`${' '.repeat(15)}${result.mend}\n`);
}
