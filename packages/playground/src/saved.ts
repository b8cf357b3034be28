// What a reload needs: results that only this page has, and the requests of those that the server has. Audio is not stored.
import { type Emotion, isModelId, type ModelId } from '@undertone/contract';
import type { Entry } from './entry.ts';
import type { Result } from './result.ts';

const NAME = 'undertone-results';

export interface SavedEntry {
  readonly name: string;
  readonly path: string;
  readonly model: ModelId;
  readonly truth?: Emotion;
  readonly requestId?: string;
  readonly result?: Result;
}

/** Entries that can come back: finished ones, and those the server is working on. */
export function toSaved(entries: readonly Entry[]): SavedEntry[] {
  return entries.flatMap(({ name, path, model, truth, requestId, result, state }) => {
    const stored = requestId !== undefined && state !== 'uploading' && state !== 'failed';
    if (!stored && result === undefined) return [];
    const labelled = truth === undefined ? {} : { truth };
    return [{ name, path, model, ...labelled, ...(stored ? { requestId } : result && { result }) }];
  });
}

export function save(entries: readonly Entry[]): void {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(toSaved(entries)));
  } catch {
    // Too much for the browser: better nothing than the results of another moment.
    sessionStorage.removeItem(NAME);
  }
}

export function readSaved(): SavedEntry[] {
  try {
    const saved: unknown = JSON.parse(sessionStorage.getItem(NAME) ?? '[]');
    return Array.isArray(saved) ? saved.filter(isSaved) : [];
  } catch {
    return [];
  }
}

export function forgetSaved(): void {
  sessionStorage.removeItem(NAME);
}

function isSaved(value: unknown): value is SavedEntry {
  const entry = value as Partial<SavedEntry> | null;
  return typeof entry?.name === 'string' && isModelId(entry.model);
}
