import type { ModelList } from '@undertone/sdk';

/** Which weights are in use, what they may be used for, and how sure one can be. */
export function About({ models }: { readonly models: ModelList }) {
  const { weights, version } = models;
  const figures = models.models.find((model) => model.default)?.figures;
  return (
    <section class="about" aria-labelledby="about">
      <h2 id="about">How much is an answer worth?</h2>
      <ul>
        {figures && (
          <li>
            On speakers it has never heard, from recordings like those it learned from, the default model is
            right in <b>{Math.round(figures.accuracy * 100)} of 100</b> cases. These are mostly actors.{' '}
            <b>Everyday conversation is much harder for it</b>: the{' '}
            <a href="/page/model-card.html">model card</a> says by how much.
          </li>
        )}
        <li>
          It hears how something is said, not what is said, and it does not know what anybody feels. An answer
          under 38 % is shown as unsure: take it as no answer.
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
          Short recordings and the microphone are never stored. Long recordings are erased as soon as they are
          classified, and their results after 24 hours.{' '}
          <a href="/page/privacy.html">What is kept, and how long</a>
        </li>
      </ul>
    </section>
  );
}
