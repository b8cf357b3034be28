import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Classifier, readCatalog } from '@undertone/classifier';
import type { ModelId } from '@undertone/contract';
import type { Command } from 'commander';
import { barOf, paint } from '../bars.ts';
import { findLabelled, type Labelled } from '../compare/labelled.ts';
import { listen } from '../compare/listen.ts';
import { draw } from '../compare/picture.ts';
import { type Judged, type Scores, score } from '../compare/scores.ts';
import { inOrder } from '../in-order.ts';
import { modelFlag, readFlags, settingFlag } from '../settings-flags.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
The recordings lie in folders named by emotion (angry/1.wav, sad/2.wav), or a CSV with the columns path and emotion lists them;
other usual names (anger, joy, calm, fear, ...) are understood. They may have any length: up to 10 s are heard at once, of
longer ones the mean of equal parts counts. A model is measured on the recordings whose emotion it knows.

UAR is the unweighted average recall. The calibration error is how far the confidences are off on average, in ten bins; where
confidence minus accuracy is above zero, a model is too sure of itself.

Examples:
  undertone models compare recordings/
  undertone models compare labels.csv --model 7emotions --picture compared.svg`;

/** weights -> model -> its scores */
type Compared = Map<string, Map<string, Scores>>;

export function addCompare(models: Command): void {
  const command = models
    .command('compare')
    .summary('measure every set of weights on labelled recordings of your own')
    .description(
      'Measures every set of weights on labelled recordings of your own: how to choose between them.',
    )
    .argument('<folder>', 'a folder of folders named by emotion, or a CSV')
    .addOption(modelFlag())
    .option('--picture <file>', 'also draw confusion and calibration as an SVG')
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
        process.stdout.write(`\nDrawn in ${options.picture}\n`);
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
      const judged: { meant: Labelled['emotion']; models: Record<string, Record<string, number>> }[] = [];
      let done = 0;
      const listened = inOrder(readable, workers + 1, async ({ file, emotion }) => {
        const models = await listen(classifier, file).catch(
          (error: unknown) => void unreadable.set(file, error),
        );
        progress(weights, ++done, readable.length);
        return { meant: emotion, models };
      });
      for await (const { meant, models } of listened) if (models) judged.push({ meant, models });
      const scores = catalog.models.map(({ id, emotions }) => {
        const said = judged.map<Judged>(({ meant, models }) => ({ meant, said: models[id] ?? {} }));
        return [id, score(emotions, said)] as const;
      });
      compared.set(weights, new Map(scores));
    } finally {
      await classifier.close();
    }
  }
  for (const [file, error] of unreadable) process.stderr.write(`undertone: ${file}: ${explain(error)}\n`);
  if (unreadable.size > 0) process.exitCode = 1;
  if (unreadable.size === labelled.length) throw new UserError('None of the recordings could be read.');
  return compared;
}

/** A line that moves, on a terminal. */
function progress(weights: string, done: number, total: number): void {
  if (!process.stderr.isTTY) return;
  const end = done === total ? '\r\x1b[K' : '';
  process.stderr.write(`\r${weights} ${barOf(done / total).padEnd(40, '·')} ${done}/${total}${end}`);
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
    const right = `${percent(confidence).padStart(8)} sure, ${percent(accuracy).padStart(8)} right`;
    return `  ${right}  ${barOf(accuracy).padEnd(40)}  ${count}`;
  });
  return [
    `${paint('bold', name)}: of each emotion (row), per cent answered as ...`,
    ...table([['', ...emotions], ...rows]),
    'How sure, and how often right:',
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

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
