import type { Progress } from '@undertone/sdk';
import type { ComponentChildren } from 'preact';

export function Card({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <article class="card">
      <h3>{name}</h3>
      {children}
    </article>
  );
}

export function Problem({ error }: { readonly error: unknown }) {
  return (
    <p class="problem" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </p>
  );
}

const STATES = {
  uploading: 'Uploading',
  queued: 'Waiting in the queue',
  processing: 'Classifying',
  completed: 'Done',
};

export function ProgressLine({ progress }: { readonly progress?: Progress | undefined }) {
  const state = progress ? STATES[progress.status] : 'Classifying';
  const share = progress && progress.status !== 'queued' ? Math.floor(progress.progress * 100) : undefined;
  return (
    <p class="progress">
      <progress aria-label={state} max={100} value={share} />
      {state} {share !== undefined && `${share} %`}
    </p>
  );
}
