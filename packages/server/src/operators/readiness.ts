import type { Classifier } from '@undertone/classifier';
import type { Authenticator } from '../http/authenticator.ts';
import { type ProblemError, retryLater } from '../problems.ts';
import type { Settings } from '../settings.ts';
import type { StoreHealth } from './store-health.ts';

interface ReadinessParts {
  readonly settings: Settings;
  readonly classifier: Classifier;
  readonly authenticator: Authenticator;
  readonly storeHealth: StoreHealth;
  readonly stopping: AbortSignal;
}

/** Why this process should get no traffic. Null: it should. */
export async function whyNotReady(parts: ReadinessParts): Promise<ProblemError | null> {
  const { settings, classifier, authenticator, storeHealth, stopping } = parts;
  if (stopping.aborted) return retryLater('overloaded', 'This server is stopping.', 1);
  if (classifier.stats().alive === 0) return retryLater('overloaded', 'No inference thread is running.', 1);
  const { database } = await storeHealth.states();
  // Without the database, only callers whose keys are cached can be answered. Workers have no callers.
  if (database === null || settings.role === 'worker' || authenticator.knowsCallers) return null;
  if (await storeHealth.canLookUpKeys()) return null;
  return retryLater('overloaded', `No key can be checked: ${database}.`, 5);
}
