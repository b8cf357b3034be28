import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { AudioError } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import {
  ADVISED_MIN_CONFIDENCE,
  DISCRETE_LIMITS,
  type DiscreteResult,
  MIN_SPEECH_SECONDS,
  type ModelId,
} from '@undertone/contract';
import { resultOf } from '@undertone/server/prediction';
import { type Command, Option } from 'commander';
import { bars, paint } from '../bars.ts';
import { Batch, printable } from '../batch.ts';
import { findRecordings } from '../files.ts';
import { inOrder } from '../in-order.ts';
import { addOutputFlags, Output, type OutputFlags } from '../output.ts';
import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';
import { NO_SPEECH, UNSURE } from '../words.ts';

const MORE = `
A recording is 4 to 10 seconds long, about one sentence: WAV always, other formats where ffmpeg is installed. \`-\` reads
standard input. For longer recordings there is \`undertone upload\`.

A folder stands for all recordings in it and in the folders below it: one bar for the whole, a line for each file, and a table in
the end. --csv and --jsonl print rows instead; with --output they go to a file, and --resume then skips the files that are in it.

With --jsonl each line has file, seconds, speech_seconds, speech, main_emotion, confidence and all_predictions, or file and error.
In CSV the emotion of a recording without speech is "${NO_SPEECH}". When some of the files could not be classified the exit code is
3, when none could, 1; the others are classified all the same.

Examples:
  undertone classify voice.wav
  undertone classify --model 7emotions recordings/*.wav
  undertone classify recordings/ --output emotions.csv --resume
  undertone classify --jsonl *.wav | jq -r '[.file, .main_emotion] | @tsv'`;

const LONGER = 'For longer recordings use `undertone upload`: it gives an emotion for every 5 seconds.';

interface Answer {
  readonly file: string;
  readonly seconds: number;
  readonly speechSeconds: number;
  readonly result: DiscreteResult;
}

interface Refusal {
  readonly file: string;
  readonly error: unknown;
}

interface Flags extends OutputFlags {
  readonly model: ModelId;
  readonly json?: true;
}

export function addClassify(program: Command): void {
  const command = program
    .command('classify')
    .summary('classify recordings now, without a server')
    .description('Classifies short recordings on this machine, without a server.')
    .argument('<path...>', 'recordings of 4 to 10 seconds, or folders of them')
    .addOption(modelFlag())
    .addOption(new Option('--csv', 'a row for each file as CSV').conflicts(['jsonl', 'json']))
    .option('--jsonl', 'one JSON object a line instead of bars')
    .option('--json', 'the same as --jsonl');
  addOutputFlags(command)
    .addOption(settingFlag('weights'))
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async (paths: string[], { json, ...flags }: Flags) => {
      const { files, isFolder } = await findRecordings(paths);
      const output = await Output.open({ ...flags, ...(json && { jsonl: json }) });
      const left = files.filter((file) => !output?.done.has(file));
      await classifyAll(
        command,
        left,
        flags.model,
        reporterFor(left, isFolder, output),
        files.length - left.length,
      );
    });
}

/** Tells what came of each file, and in the end of all of them. */
interface Reporter {
  tell(answer: Answer | Refusal): Promise<void>;
  end(skipped: number): void;
}

async function classifyAll(
  command: Command,
  files: readonly string[],
  model: ModelId,
  reporter: Reporter,
  skipped: number,
): Promise<void> {
  if (files.length === 0) return reporter.end(skipped);
  const { weights, modelsDir } = readFlags(command, ['weights', 'modelsDir']);
  const workers = Math.min(files.length, availableParallelism());
  const classifier = await Classifier.start({ weights, workers, ...(modelsDir && { modelsDir }) });
  try {
    checkModel(classifier, model);
    const answers = inOrder(files, workers, (file) => classify(file, classifier, model));
    for await (const answer of answers) await reporter.tell(answer);
    reporter.end(skipped);
  } finally {
    await classifier.close();
  }
}

function reporterFor(files: readonly string[], isFolder: boolean, output: Output | undefined): Reporter {
  if (isFolder || (output && !output.isStdout)) return batchReporter(files, output);
  let failed = 0;
  return {
    async tell(answer) {
      if ('error' in answer) failed++;
      if (output) await write(output, answer);
      // What failed is no row of CSV, so it is said beside it.
      if (!output || ('error' in answer && output.isCsv)) printBars(answer);
    },
    end() {
      if (failed > 0) process.exitCode = failed < files.length ? 3 : 1;
    },
  };
}

function batchReporter(files: readonly string[], output: Output | undefined): Reporter {
  const batch = new Batch('Classifying', files.length);
  return {
    async tell(answer) {
      if (output) await write(output, answer);
      if ('error' in answer) return batch.fail(answer.file, answer.error);
      const label = labelOf(answer);
      if (!output) batch.print(process.stdout, line(answer, label));
      batch.succeed(answer.file, [label]);
    },
    end: (skipped) => batch.end(output?.isStdout ? process.stderr : process.stdout, 'files', skipped),
  };
}

/** What a recording is counted as: its emotion when that is sure, and otherwise why it is none. */
function labelOf({ speechSeconds, result }: Answer): string {
  if (speechSeconds < MIN_SPEECH_SECONDS) return NO_SPEECH;
  return result.confidence < ADVISED_MIN_CONFIDENCE ? UNSURE : result.main_emotion;
}

function line({ file, result }: Answer, label: string): string {
  const percent = label === NO_SPEECH ? '' : ` ${(result.confidence * 100).toFixed(1).padStart(5)} %`;
  return `${label.padEnd(9)}${percent || ' '.repeat(8)}  ${printable(file)}`;
}

function write(output: Output, answer: Answer | Refusal): Promise<void> {
  if ('error' in answer) {
    return output.write({ file: answer.file, error: errorAsJson(answer.error) }, [], []);
  }
  const { file, result } = answer;
  const { main_emotion, confidence, all_predictions } = result;
  const seconds = round(answer.seconds);
  const speech_seconds = round(answer.speechSeconds);
  const speech = answer.speechSeconds >= MIN_SPEECH_SECONDS;
  const emotion = speech ? main_emotion : NO_SPEECH;
  return output.write(
    { file, seconds, speech_seconds, speech, ...result },
    ['file', 'emotion', 'confidence', 'seconds', 'speech_seconds', ...Object.keys(all_predictions)],
    [[file, emotion, confidence, seconds, speech_seconds, ...Object.values(all_predictions)]],
  );
}

function checkModel({ catalog }: Classifier, model: ModelId): void {
  const ids = catalog.models.map(({ id }) => id);
  if (!ids.includes(model)) {
    throw new UserError(
      `The models folder has no model "${model}". Choose from ${ids.join(', ')} with --model.`,
    );
  }
}

/** Never rejects: one bad file is no reason to drop the others. */
async function classify(file: string, classifier: Classifier, model: ModelId): Promise<Answer | Refusal> {
  try {
    const clip = { kind: 'file', bytes: await readBytes(file) } as const;
    const { models, seconds, speechSeconds } = await classifier.classifyClip(clip);
    return { file, seconds, speechSeconds, result: resultOf(models, model) };
  } catch (error) {
    return { file, error: explainReading(error) };
  }
}

/** The limit is kept while reading: a file may be a pipe, and a large one need not be read to its end. */
async function readBytes(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let left: number = DISCRETE_LIMITS.maxFileBytes;
  for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
    left -= chunk.length;
    if (left < 0) throw tooLarge();
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function tooLarge(): UserError {
  const mebibytes = DISCRETE_LIMITS.maxFileBytes / 1024 ** 2;
  return new UserError(
    `The file is larger than ${mebibytes} MiB, so it cannot be 4 to 10 s of audio. ${LONGER}`,
  );
}

function explainReading(error: unknown): unknown {
  if (error instanceof AudioError && error.code === 'audio_too_long') {
    return new AudioError(error.code, `${error.message} ${LONGER}`, error.figures);
  }
  const reasons: Record<string, string> = {
    ENOENT: 'There is no such file.',
    EACCES: 'You may not read this file.',
  };
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason === undefined ? error : new UserError(reason, { cause: error });
}

function errorAsJson(error: unknown) {
  const detail = explain(error);
  return error instanceof AudioError ? { code: error.code, detail, ...error.figures } : { detail };
}

function printBars(answer: Answer | Refusal): void {
  const name = printable(answer.file);
  if ('error' in answer) {
    process.stderr.write(`undertone: ${name}: ${explain(answer.error)}\n`);
    return;
  }
  const { seconds, speechSeconds, result } = answer;
  const length = `${seconds.toFixed(1)} s, ${speechSeconds.toFixed(1)} s of it speech`;
  const lines = [`${paint('bold', name)}  ${paint('dim', length)}`];
  lines.push(...bars(result.all_predictions).map((bar) => `  ${bar}`));
  if (speechSeconds < MIN_SPEECH_SECONDS) {
    lines.push('  No speech: there is no emotion to tell.');
  } else if (result.confidence < ADVISED_MIN_CONFIDENCE) {
    lines.push(`  No emotion stands out: treat answers under ${ADVISED_MIN_CONFIDENCE * 100} % as none.`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
