import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { AudioError } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import {
  ADVISED_MIN_CONFIDENCE,
  DISCRETE_LIMITS,
  type DiscreteResult,
  type ModelId,
} from '@undertone/contract';
import { toResult } from '@undertone/server/prediction';
import type { Command } from 'commander';
import { bars, paint } from '../bars.ts';
import { inOrder } from '../in-order.ts';
import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
A recording is 4 to 10 seconds long, about one sentence: WAV always, other formats where ffmpeg is installed. \`-\` reads
standard input. For longer recordings there is \`undertone upload\`.

With --json each line has file, seconds, speech_seconds, main_emotion, confidence and all_predictions, or file and error.
The exit code is 1 when any of the files could not be classified; the others are classified all the same.

Examples:
  undertone classify voice.wav
  undertone classify --model 7emotions recordings/*.wav
  undertone classify --json *.wav | jq -r '[.file, .main_emotion] | @tsv'`;

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

export function addClassify(program: Command): void {
  const command = program
    .command('classify')
    .summary('classify recordings now, without a server')
    .description('Classifies short recordings on this machine, without a server.')
    .argument('<file...>', 'recordings of 4 to 10 seconds')
    .addOption(modelFlag())
    .option('--json', 'one JSON object a line instead of bars')
    .addOption(settingFlag('weights'))
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async (files: string[], { model, json = false }: { model: ModelId; json?: boolean }) => {
      const { weights, modelsDir } = readFlags(command, ['weights', 'modelsDir']);
      const workers = Math.min(files.length, availableParallelism());
      const classifier = await Classifier.start({ weights, workers, ...(modelsDir && { modelsDir }) });
      try {
        checkModel(classifier, model);
        for await (const answer of inOrder(files, workers, (file) => classify(file, classifier, model))) {
          if ('error' in answer) process.exitCode = 1;
          if (json) printJson(answer);
          else printBars(answer);
        }
      } finally {
        await classifier.close();
      }
    });
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
    return { file, seconds, speechSeconds, result: toResult(models[model] as Record<string, number>) };
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
    EISDIR: 'This is a folder. Name the recordings in it, as in `undertone classify folder/*.wav`.',
    EACCES: 'You may not read this file.',
  };
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason === undefined ? error : new UserError(reason, { cause: error });
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

/** File names may have control characters in them, which a terminal would obey. */
function printable(name: string): string {
  return name.replace(/\p{C}/gu, '?');
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
