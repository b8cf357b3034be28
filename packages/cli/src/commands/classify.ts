import { type ModelId, NO_SPEECH } from '@undertone/contract';
import { type Command, Option } from 'commander';
import { rowShape } from '../classify/answer.ts';
import { classifyHere } from '../classify/local.ts';
import { reporterFor } from '../classify/report.ts';
import { classifyThere } from '../classify/server.ts';
import { addServerChoice, connect, refuseLocalFlags, stopsAll, usesServer, writeStatus } from '../client.ts';
import { findRecordings } from '../files.ts';
import { interruptible, stopReadingInput } from '../interrupt.ts';
import { addOutputFlags, Output, type OutputFlags } from '../output.ts';
import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
A recording is 1 to 10 seconds long, about one sentence: WAV always, other
formats if ffmpeg is installed. Under 4 seconds, which the server does not
accept, it is marked as short: its answer is less reliable. \`-\` reads standard
input. Use \`undertone upload\` for longer recordings.

With --server the recordings, of 4 to 10 seconds, are sent to the server at
--url (SERVICE_URL), with the key in SERVICE_API_KEY.

A folder means all recordings in it and in its subfolders: one progress bar, a
line for each file, and a table at the end. --csv and --jsonl print rows
instead. With --output the rows go to a file, which gets its name when all is
done. --resume adds to such a file, also after Ctrl-C, and skips what it has.

With --jsonl each line has file, seconds, speech_seconds, speech, short,
main_emotion, confidence and all_predictions, or file and error. In CSV the
emotion of a recording without speech is "${NO_SPEECH}". A file that fails does
not stop the others: the exit code is 3 if some files failed, 1 if all did.

Examples:
  undertone classify voice.wav
  undertone classify --model 7emotions recordings/*.wav
  undertone classify recordings/ --output emotions.csv --resume
  undertone classify --server voice.wav
  undertone classify --jsonl *.wav | jq -r '[.file, .main_emotion] | @tsv'`;

const LOCAL_SETTINGS = ['weights', 'modelsDir'] as const;

interface Flags extends OutputFlags {
  readonly model: ModelId;
  readonly json?: true;
}

export function addClassify(program: Command): void {
  const command = program
    .command('classify')
    .summary('classify short recordings without a server')
    .description('Classifies short recordings on this machine, without a server unless --server asks for it.')
    .argument('<path...>', 'recordings of 1 to 10 seconds, or folders of them')
    .addOption(modelFlag())
    .addOption(new Option('--csv', 'a row for each file as CSV').conflicts(['jsonl', 'json']))
    .option('--jsonl', 'one JSON object per line instead of bars')
    .option('--json', 'same as --jsonl');
  addOutputFlags(command);
  addServerChoice(command, 'send the recordings to');
  for (const name of LOCAL_SETTINGS) command.addOption(settingFlag(name));
  command.addHelpText('after', MORE).action(async (paths: string[], { json, ...flags }: Flags) => {
    const { files, isFolder } = await findRecordings(paths);
    const output = await Output.plan({ ...flags, ...(json && { jsonl: json }) }, rowShape(flags.model));
    const left = files.filter((file) => !output?.done.has(file));
    const reporter = reporterFor(left, isFolder, output);
    await interruptible(async (signal) => {
      if (left.includes('-')) stopReadingInput(signal);
      try {
        for await (const answer of answersOf(command, left, flags.model, signal)) {
          if (signal.aborted) break;
          await reporter.report(answer);
        }
      } catch (error) {
        throw stopsAll(error) ? new UserError(explain(error) + (output?.resumeHint ?? '')) : error;
      } finally {
        writeStatus('');
      }
      if (signal.aborted) throw new UserError(`Stopped.${output?.resumeHint ?? ''}`);
      await output?.finish();
      reporter.end(files.length - left.length);
    });
  });
}

function answersOf(command: Command, files: readonly string[], model: ModelId, signal: AbortSignal) {
  if (!usesServer(command)) return classifyHere(files, { ...readFlags(command, LOCAL_SETTINGS), model });
  refuseLocalFlags(command, LOCAL_SETTINGS);
  const client = connect(command, { overriddenBy: 'SERVICE_DISCRETE_URL' });
  return classifyThere(client, files, { model, signal });
}
