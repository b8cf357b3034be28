import { ADVISED_MIN_CONFIDENCE } from '@undertone/contract';
import type { ModelList } from '@undertone/sdk';
import { whole } from './summary.ts';

/** What an answer is worth: one visible line with the licence, and accuracy, law and privacy behind it. */
export function About({ models }: { readonly models: ModelList }) {
  const { weights, version } = models;
  const figures = models.models.find((model) => model.default)?.figures;
  return (
    <footer class="about">
      <details>
        <summary>
          How much is an answer worth?
          {figures &&
            ` Right in ${Math.round(figures.accuracy * 100)} of 100 acted recordings, fewer in everyday life.`}
        </summary>
        <ul>
          {figures && (
            <li>
              On new speakers in recordings like its training data, which are mostly acted, the default model
              is right in <b>{Math.round(figures.accuracy * 100)} of 100</b> cases.{' '}
              <b>Everyday conversation is much harder for it</b>: see the{' '}
              <a href="/page/model-card.html">model card</a>.
            </li>
          )}
          <li>
            It analyses how something is said, not the words, and it cannot know what a person feels. An
            answer below {whole(ADVISED_MIN_CONFIDENCE)} is shown as unsure: ignore it.
          </li>
          <li>
            In the EU it is <b>unlawful to infer emotions of people at work or in education</b> from their
            voice, except for medical or safety reasons (AI Act, article 5).
          </li>
          <li>
            Short recordings and microphone audio are never stored. Long recordings are deleted as soon as
            they are classified, and their results after 24 hours.{' '}
            <a href="/page/privacy.html">What is stored, and for how long</a>
          </li>
        </ul>
      </details>
      <p>
        Weights in use: <b>{weights.id}</b> {version}, {weights.licence}.{' '}
        {weights.commercial_use ? (
          'Commercial use is allowed.'
        ) : (
          <>
            Not for commercial use. For that, start the server with <code>SERVICE_WEIGHTS=open</code>.
          </>
        )}
      </p>
    </footer>
  );
}
