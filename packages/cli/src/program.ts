import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { columns } from './bars.ts';
import { addBackup, addRestore } from './commands/backup.ts';
import { addClassify } from './commands/classify.ts';
import { addCompletion } from './commands/completion.ts';
import { addDelete } from './commands/delete.ts';
import { addDoctor } from './commands/doctor.ts';
import { addKeys } from './commands/keys.ts';
import { addList } from './commands/list.ts';
import { addListen } from './commands/listen.ts';
import { addMigrate } from './commands/migrate.ts';
import { addModels } from './commands/models.ts';
import { addMove } from './commands/move.ts';
import { addResult } from './commands/result.ts';
import { addServe } from './commands/serve.ts';
import { addUpload } from './commands/upload.ts';
import { addWebhooks } from './commands/webhooks.ts';
import { Interrupted } from './interrupt.ts';
import { TEXT_WIDTH } from './text.ts';
import { explain, isUsageError } from './user-error.ts';

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

/** 0: done. 1: failed. 2: invalid command line or setting. 3: some files failed. 130: stopped by Ctrl-C. */
export type ExitCode = 0 | 1 | 2 | 3 | 130;

const START_HERE = `
Start here:
  undertone doctor                  check this machine, and say how to fix it
  undertone serve                   run the server; creates an API key
  undertone classify voice.wav      classify a short recording without a server
  undertone classify recordings/    classify all recordings in a folder
  undertone listen talk.wav         classify live; - reads a pipe
  undertone upload talk.wav --wait  send a long recording, show its timeline

Every command has its own help: undertone serve --help
Exit codes: 0 done, 1 failed, 2 invalid command line or setting, 3 some files
failed, 130 stopped by Ctrl-C.`;

const COMMANDS = [
  addServe,
  addKeys,
  addClassify,
  addListen,
  addUpload,
  addResult,
  addList,
  addDelete,
  addWebhooks,
  addModels,
  addDoctor,
  addMigrate,
  addMove,
  addBackup,
  addRestore,
  addCompletion,
];

export async function runProgram(args: readonly string[]): Promise<ExitCode> {
  try {
    await buildProgram().parseAsync(args, { from: 'user' });
    return (process.exitCode as ExitCode | undefined) ?? 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const message = explain(error);
    if (message !== '') process.stderr.write(`undertone: ${message}\n`);
    if (error instanceof Interrupted) return 130;
    return isUsageError(error) ? 2 : 1;
  }
}

/** Exported for tests. */
export function buildProgram(): Command {
  const program = new Command('undertone')
    .description('Tells the emotion in a voice from its tone.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', START_HERE)
    // Narrower beside long flags, rather than wider than the terminal.
    .configureHelp({ minWidthToWrap: 20 })
    .configureOutput({ getOutHelpWidth: () => Math.min(TEXT_WIDTH, columns()) })
    // Flags belong to the command before them.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help to see all commands and flags)')
    // Throws instead of exiting, in all commands.
    .exitOverride();
  for (const addCommand of COMMANDS) addCommand(program);
  return program;
}
