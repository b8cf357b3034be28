import { ADVISED_MIN_CONFIDENCE, DISCRETE_LIMITS, NO_SPEECH, UNSURE } from '@undertone/contract';
import { bars, paint, percent } from '../bars.ts';
import { Batch, printable } from '../batch.ts';
import type { Output } from '../output.ts';
import { explain } from '../user-error.ts';
import { type Answer, answerLabel, type Failure, isShort, writeAnswer } from './answer.ts';

/** Prints the result of each file, and a summary at the end. */
export interface Reporter {
  report(answer: Answer | Failure): Promise<void>;
  end(skipped: number): void;
}

export function reporterFor(
  files: readonly string[],
  isFolder: boolean,
  output: Output | undefined,
): Reporter {
  if (isFolder || (output && !output.isStdout)) return batchReporter(files, output);
  let failed = 0;
  return {
    async report(answer) {
      if ('error' in answer) failed++;
      if (output) await writeAnswer(output, answer);
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
      if (output) await writeAnswer(output, answer);
      if ('error' in answer) return batch.fail(answer.file, answer.error);
      const label = answerLabel(answer);
      if (!output) batch.print(process.stdout, line(answer, label));
      batch.succeed(answer.file, [label]);
    },
    end: (skipped) => batch.end(output?.isStdout ? process.stderr : process.stdout, 'file', skipped),
  };
}

function line(answer: Answer, label: string): string {
  const confidence = label === NO_SPEECH ? '' : percent(answer.result.confidence);
  const mark = isShort(answer) ? '  short' : '';
  return `${label.padEnd(9)} ${confidence.padStart(7)}  ${printable(answer.file)}${mark}`;
}

function printBars(answer: Answer | Failure): void {
  const name = printable(answer.file);
  if ('error' in answer) {
    process.stderr.write(`undertone: ${name}: ${explain(answer.error)}\n`);
    return;
  }
  const { seconds, speech_seconds, result } = answer;
  const length = `${seconds.toFixed(1)} s, ${speech_seconds.toFixed(1)} s of speech`;
  const short = isShort(answer);
  const lines = [`${paint('bold', name)}  ${paint('dim', short ? `${length}, short` : length)}`];
  lines.push(...bars(result.all_predictions, 2).map((bar) => `  ${bar}`));
  const label = answerLabel(answer);
  if (label === NO_SPEECH) lines.push('  No speech, so there is no emotion.');
  if (label === UNSURE) lines.push(`  Unsure: ignore answers below ${ADVISED_MIN_CONFIDENCE * 100} %.`);
  if (short) lines.push(`  Short: under ${DISCRETE_LIMITS.minSeconds} s an answer is less reliable.`);
  process.stdout.write(`${lines.join('\n')}\n`);
}
