import {
  ADVISED_MIN_CONFIDENCE,
  type Emotion,
  MODELS,
  type ModelId,
  NO_SPEECH,
  UNSURE,
} from '@undertone/contract';
import { Badge } from './answers.tsx';
import type { Label } from './summary.ts';

export interface Search {
  readonly emotion: Emotion;
  readonly threshold: number;
}

/** Confidences to look for; the lowest is where unsure begins. */
const THRESHOLDS = [ADVISED_MIN_CONFIDENCE, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

interface FinderProps {
  readonly model: ModelId;
  readonly search: Search;
  readonly count: number;
  readonly onSearch: (search: Search) => void;
  readonly onGo: (direction: 'next' | 'previous') => void;
}

/** Jumps from one stretch of an emotion to the next. */
export function Finder({ model, search, count, onSearch, onGo }: FinderProps) {
  const { emotion, threshold } = search;
  return (
    <fieldset class="tools">
      <legend>Find</legend>
      <button type="button" disabled={count === 0} onClick={() => onGo('previous')}>
        Previous
      </button>
      <button type="button" disabled={count === 0} onClick={() => onGo('next')}>
        Next {emotion}
      </button>
      <select
        aria-label="Emotion to find"
        value={emotion}
        onChange={(event) => onSearch({ emotion: event.currentTarget.value as Emotion, threshold })}
      >
        {MODELS[model].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select
        aria-label="Confidence from"
        value={String(threshold)}
        onChange={(event) => onSearch({ emotion, threshold: Number(event.currentTarget.value) })}
      >
        {THRESHOLDS.map((value) => (
          <option key={value} value={String(value)}>
            ≥ {Math.round(value * 100)} %
          </option>
        ))}
      </select>
      <span class="note">{count === 1 ? '1 place' : `${count} places`}</span>
    </fieldset>
  );
}

interface FilterProps {
  readonly model: ModelId;
  readonly filter: ReadonlySet<Label>;
  readonly onFilter: (filter: ReadonlySet<Label>) => void;
}

/** Shows only some emotions in the table, and dims the others in the timeline. */
export function Filter({ model, filter, onFilter }: FilterProps) {
  const labels: readonly Label[] = [...MODELS[model], UNSURE, NO_SPEECH];
  return (
    <fieldset class="tools">
      <legend>Show only</legend>
      {labels.map((label) => (
        <button
          key={label}
          type="button"
          class="toggle"
          aria-pressed={filter.has(label)}
          onClick={() => {
            const next = new Set(filter);
            if (!next.delete(label)) next.add(label);
            onFilter(next);
          }}
        >
          <Badge label={label} /> {label}
        </button>
      ))}
    </fieldset>
  );
}
