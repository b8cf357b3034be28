import type { ModelList } from '@undertone/sdk';

/** Accuracy, licence, law and privacy. */
export function About({ models }: { readonly models: ModelList }) {
  const { weights, version } = models;
  const figures = models.models.find((model) => model.default)?.figures;
  return (
    <section class="about" aria-labelledby="about">
      <h2 id="about">How much is an answer worth?</h2>
      <ul>
        {figures && (
          <li>
            On new speakers in recordings like its training data, which are mostly acted, the default model is
            right in <b>{Math.round(figures.accuracy * 100)} of 100</b> cases.{' '}
            <b>Everyday conversation is much harder for it</b>: see the{' '}
            <a href="/page/model-card.html">model card</a>.
          </li>
        )}
        <li>
          It analyses how something is said, not the words, and it cannot know what a person feels. An answer
          below 38 % is shown as unsure: ignore it.
        </li>
        <li>
          Weights in use: <b>{weights.id}</b> {version}, {weights.licence}.{' '}
          {weights.commercial_use ? (
            <b>Commercial use is allowed.</b>
          ) : (
            <b>
              Not for commercial use. For that, start the server with <code>SERVICE_WEIGHTS=open</code>.
            </b>
          )}
        </li>
        <li>
          In the EU it is <b>unlawful to infer emotions of people at work or in education</b> from their
          voice, except for medical or safety reasons (AI Act, article 5).
        </li>
        <li>
          Short recordings and microphone audio are never stored. Long recordings are deleted as soon as they
          are classified, and their results after 24 hours.{' '}
          <a href="/page/privacy.html">What is stored, and for how long</a>
        </li>
      </ul>
    </section>
  );
}
