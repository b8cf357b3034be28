import { EMOTION_LETTERS, type Emotion } from '@undertone/contract';
import { explain } from './explain.ts';
import { isEmotion } from './segments.ts';
import { type Label, percent, ranked, whole } from './summary.ts';

export function Badge({ label }: { readonly label: Label }) {
  if (!isEmotion(label)) {
    return (
      <span class="badge none" aria-hidden="true">
        {label === 'unsure' ? '?' : ''}
      </span>
    );
  }
  return (
    <span class={`badge ${label}`} style={{ background: `var(--${label})` }} aria-hidden="true">
      {EMOTION_LETTERS[label]}
    </span>
  );
}

/** A bar for every emotion, the most likely first. Grey if none of them is certain enough. */
export function Bars({
  all,
  sure,
}: {
  readonly all: Partial<Record<Emotion, number>>;
  readonly sure: boolean;
}) {
  return (
    <ul class="bars">
      {ranked(all).map(([emotion, share]) => (
        <li key={emotion}>
          <Badge label={emotion} />
          <span class="name">{emotion}</span>
          <span class="track" aria-hidden="true">
            <span
              class="bar"
              style={{ width: `${share * 100}%`, background: `var(--${sure ? emotion : 'unsure'})` }}
            />
          </span>
          <span class="share">{percent(share)}</span>
        </li>
      ))}
    </ul>
  );
}

/** The share of time of each label. */
export function Legend({ shares }: { readonly shares: readonly (readonly [Label, number])[] }) {
  return (
    <ul class="legend">
      {shares.map(([label, share]) => (
        <li key={label}>
          <Badge label={label} />
          {label} {whole(share)}
        </li>
      ))}
    </ul>
  );
}

/** The shares as one stacked bar. */
export function ShareBar({ shares }: { readonly shares: readonly (readonly [Label, number])[] }) {
  return (
    <span class="sharebar" aria-hidden="true">
      {shares.map(([label, share]) => (
        <i
          key={label}
          style={{
            width: `${share * 100}%`,
            background: isEmotion(label) ? `var(--${label})` : label === 'unsure' ? 'var(--unsure)' : 'none',
          }}
        />
      ))}
    </span>
  );
}

interface ProblemProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What happened, what to do, and a button that does it. */
export function Problem({ error, onRetry }: ProblemProps) {
  const { text, canRetry } = explain(error);
  return (
    <div class="problem" role="alert">
      <p>{text}</p>
      {canRetry && onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
