import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
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
import { explain, isUsageError } from './user-error.ts';

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

/**
 * 0: done. 1: it could not be done, for the reason printed. 2: the command line or a setting makes no sense. 3: it could be
 * done for some of the files.
 */
export type ExitCode = 0 | 1 | 2 | 3;

const START_HERE = `
Start here:
  undertone doctor                  check this machine, and say how to fix what is missing
  undertone serve                   run the server; the first start makes an API key
  undertone classify voice.wav      classify a short recording now, without a server
  undertone classify recordings/    classify all recordings in a folder
  undertone listen talk.wav         hear a recording live; - listens to a microphone through a pipe
  undertone upload talk.wav --wait  send a long recording to the server, and show its timeline

Every command has its own help: undertone serve --help
Exit codes: 0 done, 1 it could not be done, 2 the command line or a setting makes no sense, 3 some of the files could not be
done.`;

export async function runProgram(args: readonly string[]): Promise<ExitCode> {
  try {
    await buildProgram().parseAsync(args, { from: 'user' });
    return (process.exitCode as ExitCode | undefined) ?? 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`undertone: ${explain(error)}\n`);
    return isUsageError(error) ? 2 : 1;
  }
}

function buildProgram(): Command {
  const program = new Command('undertone')
    .description('Tells the emotion in a voice from its tone.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', START_HERE)
    // Flags belong to the command that they follow.
    .enablePositionalOptions()
    .showHelpAfterError('(add --help to see all commands and flags)')
    // Inherited by the commands: errors are thrown to us instead of ending the process.
    .exitOverride();
  addServe(program);
  addKeys(program);
  addClassify(program);
  addListen(program);
  addUpload(program);
  addResult(program);
  addList(program);
  addDelete(program);
  addWebhooks(program);
  addModels(program);
  addDoctor(program);
  addMigrate(program);
  addMove(program);
  addCompletion(program);
  return program;
}
