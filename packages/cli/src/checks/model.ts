import {
  Classifier,
  DEFAULT_MODELS_DIR,
  MAX_SECONDS,
  pickWeights,
  readCatalog,
  SAMPLE_RATE,
  verifyWeights,
} from '@undertone/classifier';
import type { Settings } from '@undertone/server';
import { type CheckUp, needed, well } from './check-up.ts';

type Where = Pick<Settings, 'weights' | 'modelsDir'>;

export async function checkModelFiles({ weights, modelsDir }: Where): Promise<CheckUp> {
  const folder = modelsDir === '' ? DEFAULT_MODELS_DIR : modelsDir;
  try {
    const catalog = await readCatalog(folder);
    const entry = pickWeights(catalog, weights);
    await verifyWeights(folder, entry);
    const use = entry.commercial_use ? 'commercial use allowed' : 'no commercial use';
    return well(`${weights} weights, version ${catalog.version}, checksum right; ${entry.licence} (${use})`);
  } catch (error) {
    return needed('missing or damaged', (error as Error).message);
  }
}

/** Runs it once: a runtime without a build for this machine shows here and nowhere else. */
export async function checkModelRuns({ weights, modelsDir }: Where): Promise<CheckUp> {
  try {
    const classifier = await Classifier.start({
      weights,
      workers: 1,
      ...(modelsDir !== '' && { modelsDir }),
    });
    try {
      const silence = new Float32Array(MAX_SECONDS * SAMPLE_RATE);
      const { timings } = await classifier.classify(silence, { priority: 'discrete' });
      return well(`hears ${MAX_SECONDS} s of sound in ${Math.round(timings.inferenceMs)} ms`);
    } finally {
      await classifier.close();
    }
  } catch (error) {
    return needed(
      'does not run',
      `${(error as Error).message.split('\n', 1)[0]}. If the files are right, install again: make install.`,
    );
  }
}
