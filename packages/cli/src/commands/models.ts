import { type Catalog, type Figures, readCatalog, type WeightsEntry } from '@undertone/classifier';
import { DEFAULT_MODEL } from '@undertone/contract';
import { SETTINGS } from '@undertone/server/settings';
import type { Command } from 'commander';
import { paint } from '../bars.ts';
import { readFlags, settingFlag } from '../settings-flags.ts';
import { addCompare } from './models-compare.ts';

const NOTES = `The figures of different weights were measured on different speakers and cannot be compared: docs/MODEL_CARD.md has them side
by side on the same ones. These are mostly actors; everyday conversation is much harder for every model.
An answer says how a voice sounds, not what a person feels. In the EU it is unlawful to infer the emotions of people at work or in
education, except for medical or safety reasons.`;

const MORE = `
UAR is the unweighted average recall: the mean, over the emotions, of how many recordings of each were recognised, all of
speakers who are not in the training data. ECE (expected calibration error) is how far the confidences are off on average, on
such speakers.

\`undertone models compare FOLDER\` measures the weights on recordings of your own.

${NOTES}`;

export function addModels(program: Command): void {
  const command = program
    .command('models')
    .summary('show the models, their accuracy and their licences')
    .description('Shows the models, how well they did in tests, and the weights with their licences.')
    .option('--json', 'the whole catalogue as JSON')
    .addOption(settingFlag('modelsDir'))
    .addHelpText('after', MORE)
    .action(async ({ json = false }: { json?: boolean }) => {
      const { modelsDir } = readFlags(command, ['modelsDir']);
      const catalog = await readCatalog(modelsDir || undefined);
      process.stdout.write(`${json ? JSON.stringify(catalog, null, 2) : describe(catalog)}\n`);
    });
  addCompare(command);
}

function describe(catalog: Catalog): string {
  const models = catalog.models.map(
    ({ id, emotions }) =>
      `  ${paint('bold', id)}  ${emotions.join(', ')}${id === DEFAULT_MODEL ? '  (default)' : ''}`,
  );
  const weights = Object.entries(catalog.weights).flatMap(([name, entry]) => describeWeights(name, entry));
  return [`Models (version ${catalog.version})`, ...models, '', 'Weights', ...weights, '', NOTES].join('\n');
}

function describeWeights(
  name: string,
  { licence, commercial_use, summary, figures }: WeightsEntry,
): string[] {
  const use = commercial_use ? 'commercial use allowed' : 'no commercial use';
  return [
    `  ${paint('bold', name)}${name === SETTINGS.weights.default ? '  (default)' : ''}  ${licence} (${use})`,
    `    ${summary}`,
    ...Object.entries(figures).map(([id, measured]) => `    ${id}  ${describeFigures(measured)}`),
  ];
}

function describeFigures({ uar, accuracy, macro_f1, ece, split }: Figures): string {
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return `UAR ${percent(uar)}, accuracy ${percent(accuracy)}, macro F1 ${percent(macro_f1)}, ECE ${percent(ece)}  (${split})`;
}
