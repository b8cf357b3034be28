import { availableParallelism } from 'node:os';
import { AudioError } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import {
  ADVISED_MIN_CONFIDENCE,
  DEFAULT_MODEL,
  type DiscreteResult,
  MODEL_IDS,
  type ModelId,
} from '@undertone/contract';
import { type Command, Option } from 'commander';
import { bars, paint } from '../bars.ts';
import { explain } from '../failure.ts';
import { inOrder } from '../in-order.ts';
import { readRecording } from '../recording.ts';
import { readFlags, settingFlag } from '../settings-flags.ts';

const MORE = `
A recording is 4 to 10 seconds long, about one sentence: WAV always, other formats where ffmpeg is installed. \`-\` reads
standard input. For longer recordings there is \`undertone upload\`.

With --json each line has file, seconds, speech_seconds, main_emotion, confidence and all_predictions, or file and error.
The exit code is 1 when any of the files could not be classified; the others are answered all the same.

Examples:
  undertone classify voice.wav
  undertone classify --model 7emotions recordings/*.wav
  undertone classify --json *.wav | jq -r '[.file, .main_emotion] | @tsv'`;

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

export function addClassify(program: Command): void {
  const classify = program
    .command('classify')
    .summary('classify recordings now, without a server')
    .description('Classifies short recordings on this machine, without a server.')
    .argument('<file...>', 'recordings of 4 to 10 seconds')
    .addOption(
      new Option('--model <model>', 'which emotions to tell apart')
        .choices([...MODEL_IDS])
        .default(DEFAULT_MODEL),
    )
    .option('--json', 'one JSON object a line instead of bars')
    .addOption(settingFlag('weights'))
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async (files: string[], { model, json = false }: { model: ModelId; json?: boolean }) => {
      const { weights, modelsDir } = readFlags(classify, ['weights', 'modelsDir']);
      const workers = Math.min(files.length, availableParallelism());
      const classifier = await Classifier.start({ weights, workers, ...(modelsDir !== '' && { modelsDir }) });
      try {
        const answers = inOrder(files, workers, (file) => hear(file, classifier, model));
        for await (const answer of answers) {
          if ('error' in answer) process.exitCode = 1;
          if (json) printJson(answer);
          else printBars(answer);
        }
      } finally {
        await classifier.close();
      }
    });
}

async function hear(file: string, classifier: Classifier, model: ModelId): Promise<Answer | Refusal> {
  try {
    const { samples, seconds } = await readRecording(file);
    // One by one as fast as they are heard: nobody else is waiting, so there is no reason to refuse.
    const { toResult } = await import('@undertone/server');
    const { models, speechSeconds } = await classifier.classify(samples, { priority: 'asynch' });
    return { file, seconds, speechSeconds, result: toResult(models[model] ?? {}) };
  } catch (error) {
    return { file, error };
  }
}

function printJson(answer: Answer | Refusal): void {
  const { file } = answer;
  const line =
    'error' in answer
      ? { file, error: errorAsJson(answer.error) }
      : {
          file,
          seconds: round(answer.seconds),
          speech_seconds: round(answer.speechSeconds),
          ...answer.result,
        };
  process.stdout.write(`${JSON.stringify(line)}\n`);
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
  if (result.confidence < ADVISED_MIN_CONFIDENCE) {
    lines.push(`  No emotion stands out: treat answers under ${ADVISED_MIN_CONFIDENCE * 100} % as none.`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** File names may hold what a terminal obeys. */
function printable(name: string): string {
  return name.replace(/\p{C}/gu, '?');
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
