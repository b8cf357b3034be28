import { SETTINGS } from '@undertone/server/settings';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { asEnvironment, FLAG_NAMES, settingFlag, WITHOUT_FLAG } from '../settings-flags.ts';

const { env, description } = SETTINGS[WITHOUT_FLAG];

const MORE = `
By environment only, since others on the machine can read command lines:
  ${env}  ${description}

A flag goes before its variable, a variable before the default. The first start makes a key and prints it once, unless there
is one already. Stop the server with Ctrl-C or SIGTERM: it answers what is in flight first; a second signal ends it at once.

Examples:
  undertone serve --port 9000
  undertone serve --host 0.0.0.0 --weights open --rate-limit 600
  ${env}=a-key-of-your-own undertone serve`;

export function addServe(program: Command): void {
  const serve = program
    .command('serve')
    .summary('run the service')
    .description('Runs the service until it is told to stop.')
    .addHelpText('after', MORE);
  for (const name of FLAG_NAMES) serve.addOption(settingFlag(name));
  serve.action(async () => {
    const environment = { ...process.env, ...asEnvironment(serve, FLAG_NAMES) };
    const { main } = await import('@undertone/server');
    try {
      await main(environment);
    } catch (error) {
      throw explainStart(error as NodeJS.ErrnoException, environment);
    }
  });
}

function explainStart(error: NodeJS.ErrnoException, environment: Record<string, string | undefined>): Error {
  const host = environment[SETTINGS.host.env];
  const port = environment[SETTINGS.port.env];
  const dataDir = environment[SETTINGS.dataDir.env];
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} of ${host} is taken. Stop the program that has it, or choose another with --port.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Choose one with --host; 0.0.0.0 is all of them.`,
    ENOTFOUND: `There is no host named ${host}. Choose one with --host; 0.0.0.0 is all addresses of this machine.`,
    EACCES:
      error.syscall === 'listen'
        ? `You may not listen on port ${port}. Ports under 1024 often need rights; choose another with --port.`
        : `The data folder ${dataDir} cannot be written to. Choose another with --data-dir.`,
    EROFS: `The data folder ${dataDir} is on a disk that cannot be written to. Choose another with --data-dir.`,
    ENOTDIR: `The data folder ${dataDir} is not a folder. Choose another with --data-dir.`,
    EEXIST: `The data folder ${dataDir} is not a folder. Choose another with --data-dir.`,
    ERR_SQLITE_ERROR: `The database in ${dataDir} cannot be used (${error.message}). See \`undertone doctor\`.`,
  };
  const reason = reasons[error.code ?? ''];
  return reason === undefined ? error : new Failure(reason, { cause: error });
}
