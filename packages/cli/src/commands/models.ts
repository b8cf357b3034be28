import { type Catalog, type Figures, readCatalog, type WeightsEntry } from '@undertone/classifier';
import { DEFAULT_MODEL } from '@undertone/contract';
import type { ModelList } from '@undertone/sdk';
import { SETTINGS } from '@undertone/server/settings';
import type { Command } from 'commander';
import { paint, percent } from '../bars.ts';
import { addServerChoice, connect, refuseLocalFlags, usesServer } from '../client.ts';
import { readFlags, settingFlag } from '../settings-flags.ts';
import { wrap } from '../text.ts';
import { addCompare } from './models-compare.ts';

const NOTES = `Each set of weights was measured on speakers of its own corpora, so compare the
weights side by side instead. All corpora except meld are acted or read: on
everyday conversation (meld) every model is little better than chance. An answer
says how a voice sounds, not what a person feels. In the EU it is unlawful to
infer the emotions of people at work or in education, except for medical or
safety reasons.`;

const MORE = `
UAR is the unweighted average recall: the share of recordings recognised,
averaged over the emotions. ECE (expected calibration error) is the average
distance between confidence and accuracy. Both are measured on speakers who are
not in the training data. docs/MODEL_CARD.md has all measurements.

\`undertone models compare FOLDER\` measures the weights on your own recordings.

${NOTES}`;

export function addModels(program: Command): void {
  const command = program
    .command('models')
    .summary('show the models, their accuracy and their licences')
    .description('Shows the models with their accuracy, and the weights with their licences.')
    .option('--json', 'the whole catalogue as JSON');
  addServerChoice(command, 'ask')
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async ({ json = false }: { json?: boolean }) => {
      if (usesServer(command)) {
        refuseLocalFlags(command, ['modelsDir']);
        const list = await connect(command).models();
        process.stdout.write(`${json ? JSON.stringify(list, null, 2) : describeServer(list)}\n`);
        return;
      }
      const { modelsDir } = readFlags(command, ['modelsDir']);
      const catalog = await readCatalog(modelsDir || undefined);
      process.stdout.write(`${json ? JSON.stringify(catalog, null, 2) : describe(catalog)}\n`);
    });
  addCompare(command);
}

/** The models of a server, and the one set of weights that it uses. */
function describeServer({ version, weights, models }: ModelList): string {
  const { id, licence, commercial_use, summary } = weights;
  const figures = models.flatMap((model) => (model.figures ? [[model.id, model.figures] as const] : []));
  return [
    `Models (version ${version})`,
    ...models.map(describeModel),
    '',
    'Weights in use',
    ...describeWeights(id, { licence, commercial_use, summary, figures: Object.fromEntries(figures) }, false),
  ].join('\n');
}

function describeModel({
  id,
  emotions,
}: {
  readonly id: string;
  readonly emotions: readonly string[];
}): string {
  return `  ${paint('bold', id)}  ${emotions.join(', ')}${id === DEFAULT_MODEL ? '  (default)' : ''}`;
}

function describe(catalog: Catalog): string {
  const weights = Object.entries(catalog.weights).flatMap(([name, entry]) => describeWeights(name, entry));
  return [
    `Models (version ${catalog.version})`,
    ...catalog.models.map(describeModel),
    '',
    'Weights',
    ...weights,
    ...sideBySide(catalog),
    '',
    NOTES,
  ].join('\n');
}

/** Compares the weights on the corpora that all of them were measured on. */
function sideBySide({ models, weights }: Catalog): string[] {
  const names = Object.keys(weights);
  const table = (measured: 'new_speakers' | 'never_heard', title: string): string[] => {
    const uar = (name: string, model: string) => weights[name]?.figures[model]?.[measured] ?? {};
    const [first = '', ...others] = names;
    const corpora = Object.keys(uar(first, DEFAULT_MODEL)).filter((corpus) =>
      others.every((name) => corpus in uar(name, DEFAULT_MODEL)),
    );
    const rows = corpora.map((corpus) => {
      const cells = names.map((name) => {
        const shares = models.map(({ id }) => uar(name, id)[corpus]);
        return `${shares.map((share) => (share === undefined ? '-' : (share * 100).toFixed(1))).join(' / ')} %`;
      });
      return row(corpus, cells);
    });
    return rows.length > 0 ? [`  ${title}`, ...rows] : [];
  };
  const rows = [
    ...table('new_speakers', 'new speakers of corpora that all weights were trained on'),
    ...table('never_heard', 'corpora never heard in training (or in a shorter run without them)'),
  ];
  if (names.length < 2 || rows.length === 0) return [];
  return ['', `Side by side: UAR with ${models.map(({ id }) => id).join(' / ')}`, row('', names), ...rows];
}

const row = (title: string, cells: string[]) =>
  `    ${[title.padEnd(10), ...cells.map((cell) => cell.padEnd(20))].join('  ').trimEnd()}`;

type Weights = Pick<WeightsEntry, 'licence' | 'commercial_use' | 'summary' | 'figures'>;

function describeWeights(
  name: string,
  { licence, commercial_use, summary, figures }: Weights,
  isDefault = name === SETTINGS.weights.default,
): string[] {
  const use = commercial_use ? 'commercial use allowed' : 'no commercial use';
  return [
    `  ${paint('bold', name)}${isDefault ? '  (default)' : ''}  (${use})`,
    wrap(licence, '    '),
    wrap(summary, '    '),
    ...Object.entries(figures).flatMap(([id, measured]) => describeFigures(id, measured)),
  ];
}

function describeFigures(id: string, { uar, accuracy, macro_f1, ece, split }: Figures): string[] {
  const shares = { UAR: uar, accuracy, 'macro F1': macro_f1, ECE: ece };
  const figures = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return [`    ${id}  ${figures.join(', ')}`, wrap(`(${split})`, '      ')];
}
