import { SETTINGS } from '@undertone/server/settings';
import type { Command } from 'commander';
import { explainStorage } from '../checks.ts';
import { asEnvironment, FLAG_NAMES, settingFlag, WITHOUT_FLAG } from '../settings-flags.ts';
import { wrap } from '../text.ts';
import { UserError } from '../user-error.ts';

const { env } = SETTINGS.apiKey;
const SECRETS = WITHOUT_FLAG.map(
  (name) => `  ${SETTINGS[name].env}\n${wrap(SETTINGS[name].description, '    ')}`,
);

const MORE = `
Environment variables without a flag, because other users of the machine can
read command lines:
${SECRETS.join('\n')}

A flag overrides its environment variable. If there is no key, the first start
creates one: on a terminal it is shown once, in a link to the page; otherwise it
is written to a file that the log names. Stop the server with Ctrl-C or SIGTERM:
it finishes requests in flight first. A second signal stops it immediately.

Examples:
  undertone serve --port 9000
  undertone serve --host 0.0.0.0 --weights open --rate-limit 600
  ${env}=a-key-of-your-own undertone serve`;

export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .summary('run the server')
    .description('Runs the server until Ctrl-C or SIGTERM.')
    .addHelpText('after', MORE);
  for (const name of FLAG_NAMES) command.addOption(settingFlag(name));
  command.action(async () => {
    const environment = { ...process.env, ...asEnvironment(command, FLAG_NAMES) };
    const { main } = await import('@undertone/server');
    try {
      await main(environment);
    } catch (error) {
      throw await explainStart(error, environment);
    }
  });
}

async function explainStart(
  error: unknown,
  environment: Record<string, string | undefined>,
): Promise<unknown> {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const host = environment[SETTINGS.host.env];
  const port = environment[SETTINGS.port.env];
  const another = 'choose another port: SERVICE_PORT=9000 or --port 9000.';
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} is in use. Stop the program that uses it, or ${another}`,
    EACCES: `You are not allowed to listen on port ${port}. Ports below 1024 often need root; ${another}`,
    EADDRNOTAVAIL: `This machine does not have the address ${host}. Choose another with --host; 0.0.0.0 means all.`,
    ENOTFOUND: `The host name ${host} is unknown. Choose another with --host; 0.0.0.0 means all addresses.`,
  };
  const reason = syscall === 'listen' || syscall === 'getaddrinfo' ? reasons[code ?? ''] : undefined;
  if (reason !== undefined) return new UserError(reason, { cause: error });
  const { dataDir } = SETTINGS;
  const folder = dataDir.parse(environment[dataDir.env] || dataDir.default);
  return explainStorage(error, folder, environment[SETTINGS.databaseUrl.env]);
}
