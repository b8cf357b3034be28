import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Classifier, readCatalog } from '@undertone/classifier';
import { type LabelledPrediction, type ModelId, type Scores, score } from '@undertone/contract';
import type { Command } from 'commander';
import { barOf, fittingBar, paint, percent } from '../bars.ts';
import { inOrder, progressLine } from '../batch.ts';
import { writeStatus } from '../client.ts';
import { classifyFile } from '../compare/classify-file.ts';
import { findLabelled, type Labelled } from '../compare/labelled.ts';
import { draw } from '../compare/plot.ts';

import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
Put the recordings into folders named by emotion (angry/1.wav, sad/2.wav), or
list them in a CSV with the columns path and emotion. Other common names (anger,
joy, calm, fear, ...) work too. Recordings may have any length: longer ones are
split into equal parts of at most 10 s, and the mean counts. A model is measured
only on the emotions it knows.

UAR is the unweighted average recall. The calibration error is the average
distance between confidence and accuracy, in ten bins. If confidence minus
accuracy is above zero, the model is overconfident.

Examples:
  undertone models compare recordings/
  undertone models compare labels.csv --model 7emotions --picture compared.svg`;

/** weights -> model -> its scores */
type Compared = Map<string, Map<string, Scores>>;

export function addCompare(models: Command): void {
  const command = models
    .command('compare')
    .summary('measure every set of weights on your own labelled recordings')
    .description('Measures every set of weights on your own labelled recordings, to help you choose one.')
    .argument('<folder>', 'a folder with subfolders named by emotion, or a CSV')
    .addOption(modelFlag())
    .option('--picture <file>', 'also write a plot of confusion and calibration as SVG')
    .option('--json', 'all scores as JSON')
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async (folder: string, options: { model: ModelId; picture?: string; json?: boolean }) => {
      const { modelsDir } = readFlags(command, ['modelsDir']);
      const labelled = await findLabelled(folder);
      const compared = await compare(labelled, modelsDir || undefined);
      if (options.picture !== undefined) {
        await writeFile(options.picture, draw(options.model, scoresOf(compared, options.model)));
      }
      process.stdout.write(`${options.json ? asJson(compared) : describe(compared, options.model)}\n`);
      if (options.picture !== undefined && !options.json)
        process.stdout.write(`\nPlot written to ${options.picture}\n`);
    });
}

async function compare(labelled: readonly Labelled[], modelsDir: string | undefined): Promise<Compared> {
  const catalog = await readCatalog(modelsDir);
  const compared: Compared = new Map();
  const unreadable = new Map<string, unknown>();
  for (const weights of Object.keys(catalog.weights)) {
    const readable = labelled.filter(({ file }) => !unreadable.has(file));
    const workers = Math.min(readable.length, availableParallelism());
    if (workers === 0) break;
    const classifier = await Classifier.start({ weights, workers, ...(modelsDir && { modelsDir }) });
    try {
      const answers: { truth: Labelled['emotion']; models: Record<string, Record<string, number>> }[] = [];
      let done = 0;
      const classified = inOrder(readable, workers + 1, async ({ file, emotion }) => {
        const models = await classifyFile(classifier, file).catch(
          (error: unknown) => void unreadable.set(file, error),
        );
        const share = ++done / readable.length;
        const line = progressLine(weights, share, `${done}/${readable.length}`, process.stderr.columns || 80);
        writeStatus(share === 1 ? '' : line);
        return { truth: emotion, models };
      });
      for await (const { truth, models } of classified) if (models) answers.push({ truth, models });
      const scores = catalog.models.map(({ id, emotions }) => {
        const predictions = answers.map<LabelledPrediction>(({ truth, models }) => ({
          truth,
          probabilities: models[id] ?? {},
        }));
        return [id, score(emotions, predictions)] as const;
      });
      compared.set(weights, new Map(scores));
    } finally {
      await classifier.close();
    }
  }
  for (const [file, error] of unreadable) process.stderr.write(`undertone: ${file}: ${explain(error)}\n`);
  if (unreadable.size > 0) process.exitCode = 1;
  if (unreadable.size === labelled.length) throw new UserError('No recording could be read.');
  return compared;
}

function scoresOf(compared: Compared, model: ModelId): Map<string, Scores> {
  return new Map(
    [...compared].flatMap(([weights, models]) => {
      const scores = models.get(model);
      return scores === undefined ? [] : [[weights, scores] as const];
    }),
  );
}

function asJson(compared: Compared): string {
  const rows = [...compared].map(([weights, models]) => [weights, Object.fromEntries(models)]);
  return JSON.stringify(Object.fromEntries(rows), null, 2);
}

function describe(compared: Compared, model: ModelId): string {
  const head = ['', 'recordings', 'UAR', 'accuracy', 'calibration error', 'confidence - accuracy'];
  const rows = [...compared].flatMap(([weights, models]) =>
    [...models].map(([id, s]) => [
      `${weights} ${id}`,
      ...(s.recordings === 0
        ? ['0', '-', '-', '-', '-']
        : [`${s.recordings}`, ...[s.uar, s.accuracy, s.ece, s.overconfidence].map(percent)]),
    ]),
  );
  const details = [...scoresOf(compared, model)]
    .filter(([, { recordings }]) => recordings > 0)
    .flatMap(([weights, scores]) => ['', ...describeOne(`${weights} ${model}`, scores)]);
  return [...table([head, ...rows]), ...details].join('\n');
}

function describeOne(name: string, { emotions, confusion, reliability }: Scores): string[] {
  const rows = confusion.map((row, i) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    return [
      emotions[i] ?? '',
      ...row.map((count) => (count === 0 ? '·' : `${Math.round((100 * count) / total)}`)),
    ];
  });
  const bins = reliability.map(({ count, confidence, accuracy }) => {
    const right = `${percent(confidence).padStart(8)} confident, ${percent(accuracy).padStart(8)} correct`;
    const width = fittingBar(right.length + 4 + 8);
    return `  ${right}  ${barOf(accuracy, width).padEnd(width)}  ${count}`;
  });
  return [
    `${paint('bold', name)}: each emotion (row), per cent classified as`,
    ...table([['', ...emotions], ...rows]),
    'Confidence and accuracy:',
    ...bins,
  ];
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')}`.trimEnd(),
  );
}
