import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { AudioError } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import {
  ADVISED_MIN_CONFIDENCE,
  DISCRETE_LIMITS,
  type DiscreteResult,
  hasSpeech,
  labelOf,
  type ModelId,
  NO_SPEECH,
  UNSURE,
} from '@undertone/contract';
import { resultOf } from '@undertone/server/prediction';
import { type Command, Option } from 'commander';
import { bars, paint, percent } from '../bars.ts';
import { Batch, inOrder, printable } from '../batch.ts';
import { explainReading, findRecordings } from '../files.ts';
import { addOutputFlags, Output, type OutputFlags } from '../output.ts';
import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
A recording is 4 to 10 seconds long, about one sentence: WAV always, other formats if ffmpeg is installed. \`-\` reads standard
input. Use \`undertone upload\` for longer recordings.

A folder means all recordings in it and in its subfolders: one progress bar, a line for each file, and a table at the end. --csv
and --jsonl print rows instead. With --output the rows go to a file, and --resume skips the files that it already has.

With --jsonl each line has file, seconds, speech_seconds, speech, main_emotion, confidence and all_predictions, or file and error.
In CSV the emotion of a recording without speech is "${NO_SPEECH}". A file that fails does not stop the others: the exit code is 3
if some files failed, 1 if all did.

Examples:
  undertone classify voice.wav
  undertone classify --model 7emotions recordings/*.wav
  undertone classify recordings/ --output emotions.csv --resume
  undertone classify --jsonl *.wav | jq -r '[.file, .main_emotion] | @tsv'`;

const LONGER = 'Use `undertone upload` for longer recordings: it gives an emotion for every 5 seconds.';

interface Answer {
  readonly file: string;
  readonly seconds: number;
  readonly speech_seconds: number;
  readonly result: DiscreteResult;
}

interface Failure {
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
    .summary('classify short recordings without a server')
    .description('Classifies short recordings on this machine, without a server.')
    .argument('<path...>', 'recordings of 4 to 10 seconds, or folders of them')
    .addOption(modelFlag())
    .addOption(new Option('--csv', 'a row for each file as CSV').conflicts(['jsonl', 'json']))
    .option('--jsonl', 'one JSON object per line instead of bars')
    .option('--json', 'same as --jsonl');
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

/** Prints the result of each file, and a summary at the end. */
interface Reporter {
  report(answer: Answer | Failure): Promise<void>;
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
    for await (const answer of answers) await reporter.report(answer);
    reporter.end(skipped);
  } finally {
    await classifier.close();
  }
}

function reporterFor(files: readonly string[], isFolder: boolean, output: Output | undefined): Reporter {
  if (isFolder || (output && !output.isStdout)) return batchReporter(files, output);
  let failed = 0;
  return {
    async report(answer) {
      if ('error' in answer) failed++;
      if (output) await write(output, answer);
      // A failure has no row in CSV: it goes to standard error.
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
    async report(answer) {
      if (output) await write(output, answer);
      if ('error' in answer) return batch.fail(answer.file, answer.error);
      const label = answerLabel(answer);
      if (!output) batch.print(process.stdout, line(answer, label));
      batch.succeed(answer.file, [label]);
    },
    end: (skipped) => batch.end(output?.isStdout ? process.stderr : process.stdout, 'file', skipped),
  };
}

function answerLabel({ speech_seconds, result: { main_emotion: emotion, confidence } }: Answer): string {
  return labelOf({ emotion, confidence, speech_seconds });
}

function line({ file, result }: Answer, label: string): string {
  const confidence = label === NO_SPEECH ? '' : percent(result.confidence);
  return `${label.padEnd(9)} ${confidence.padStart(7)}  ${printable(file)}`;
}

function write(output: Output, answer: Answer | Failure): Promise<void> {
  if ('error' in answer) {
    return output.write({ file: answer.file, error: errorAsJson(answer.error) }, [], []);
  }
  const { file, result } = answer;
  const { main_emotion, confidence, all_predictions } = result;
  const seconds = round(answer.seconds);
  const speech_seconds = round(answer.speech_seconds);
  const speech = hasSpeech(answer);
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

/** Never rejects, so that one bad file does not stop the others. */
async function classify(file: string, classifier: Classifier, model: ModelId): Promise<Answer | Failure> {
  try {
    const clip = { kind: 'file', bytes: await readBytes(file) } as const;
    const { models, seconds, speechSeconds } = await classifier.classifyClip(clip);
    const result = resultOf(models, model);
    return { file, seconds, speech_seconds: speechSeconds, result };
  } catch (error) {
    return { file, error: withUploadHint(explainReading(error)) };
  }
}

/** Checks the limit while reading, because a pipe has no known size and a large file need not be read completely. */
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
    `The file is larger than ${mebibytes} MiB, too large for 4 to 10 s of audio. ${LONGER}`,
  );
}

function withUploadHint(error: unknown): unknown {
  if (!(error instanceof AudioError) || error.code !== 'audio_too_long') return error;
  return new AudioError(error.code, `${error.message} ${LONGER}`, error.figures);
}

function errorAsJson(error: unknown) {
  const detail = explain(error);
  return error instanceof AudioError ? { code: error.code, detail, ...error.figures } : { detail };
}

function printBars(answer: Answer | Failure): void {
  const name = printable(answer.file);
  if ('error' in answer) {
    process.stderr.write(`undertone: ${name}: ${explain(answer.error)}\n`);
    return;
  }
  const { seconds, speech_seconds, result } = answer;
  const length = `${seconds.toFixed(1)} s, ${speech_seconds.toFixed(1)} s of speech`;
  const lines = [`${paint('bold', name)}  ${paint('dim', length)}`];
  lines.push(...bars(result.all_predictions).map((bar) => `  ${bar}`));
  const label = answerLabel(answer);
  if (label === NO_SPEECH) lines.push('  No speech, so there is no emotion.');
  if (label === UNSURE) {
    lines.push(`  Unsure: ignore answers below ${ADVISED_MIN_CONFIDENCE * 100} %.`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
