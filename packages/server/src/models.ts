import type { Classifier } from '@undertone/classifier';
import { DEFAULT_MODEL } from '@undertone/contract';
import { ProblemError } from './problems.ts';

/** The name of the model that answers. A catalogue of one's own may have fewer than the contract names. */
export function requireModel({ catalog }: Pick<Classifier, 'catalog'>, name: string = DEFAULT_MODEL): string {
  const models = catalog.models.map(({ id }) => id);
  if (models.includes(name)) return name;
  throw unknownModel(models);
}

export function unknownModel(models: readonly string[]): ProblemError {
  const detail = `The query parameter model must be one of ${models.join(', ')}.`;
  return new ProblemError('unknown_model', detail, { figures: { models } });
}
