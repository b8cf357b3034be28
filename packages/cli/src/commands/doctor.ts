import type { Command } from 'commander';
import { columns, paint } from '../bars.ts';
import { countOf } from '../batch.ts';
import { CHECKED_SETTINGS, CHECKS } from '../checks.ts';
import { addServerFlags } from '../client.ts';
import { readDatabaseUrl, readFlags, settingFlag } from '../settings-flags.ts';
import type { Finding } from '../store-checks.ts';
import { wrap } from '../text.ts';

const MORE = `
Each line says ok, warning or error, and how to fix the problem. The exit code
is 1 if there is an error. Nothing is changed on this machine. PostgreSQL and S3
are checked only if SERVICE_DATABASE_URL and SERVICE_S3_BUCKET are set; the
check writes two small objects to the bucket and deletes them. A server that
runs, at --url or on this machine, is asked whether it accepts the key in
SERVICE_API_KEY.

With --json: one object with ready and checks, each of them with name, state,
found and, unless it is ok, fix.`;

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
  command.option('--json', 'all findings as one JSON object');
  addServerFlags(command, 'address of a server to try');
  for (const name of CHECKED_SETTINGS) command.addOption(settingFlag(name));
  command.action(async ({ json, url }: { json?: true; url?: string }) => {
    const settings = {
      ...readFlags(command, CHECKED_SETTINGS),
      databaseUrl: readDatabaseUrl(),
      url,
      apiKey: process.env['SERVICE_API_KEY'],
    };
    const checks: ({ name: string } & Finding)[] = [];
    for (const [name, check] of Object.entries(CHECKS)) {
      const finding = await check(settings);
      if (finding === null) continue;
      checks.push({ name, ...finding });
      if (!json) print(name, finding);
    }
    const errors = checks.filter(({ state }) => state === 'error').length;
    if (errors > 0) process.exitCode = 1;
    const last = errors === 0 ? 'Ready: `undertone serve`.' : `Fix ${countOf(errors, 'problem')} first.`;
    process.stdout.write(json ? `${JSON.stringify({ ready: errors === 0, checks })}\n` : `\n${last}\n`);
  });
}

function print(name: string, { state, found, fix = '' }: Finding): void {
  const label = paint(COLOURS[state], state) + ' '.repeat(STATE_WIDTH - state.length);
  const indentation = ' '.repeat(STATE_WIDTH + NAME_WIDTH);
  // Whole lines for a program that reads them.
  const width = process.stdout.isTTY ? columns() : Number.POSITIVE_INFINITY;
  const [first = '', ...more] = [found, fix].filter(Boolean).map((text) => wrap(text, indentation, width));
  const lines = [`${label}${name.padEnd(NAME_WIDTH)}${first.trimStart()}`, ...more];
  process.stdout.write(`${lines.join('\n')}\n`);
}
