import { MODEL_IDS, MODELS, type Scores, score } from '@undertone/contract';
import { useMemo } from 'preact/hooks';
import { type FileRow, predictionsOf } from './file-rows.ts';
import { percent } from './summary.ts';

/** A confusion matrix for every model that labelled recordings were classified with. */
export function Matrices({ rows }: { readonly rows: readonly FileRow[] }) {
  const found = useMemo(
    () =>
      MODEL_IDS.map((model) => [model, score(MODELS[model], predictionsOf(rows, model))] as const).filter(
        ([, { recordings }]) => recordings > 0,
      ),
    [rows],
  );
  return (
    <>
      {found.map(([model, scores]) => (
        <Matrix key={model} model={model} scores={scores} />
      ))}
    </>
  );
}

/** Each row an emotion, in per cent of its recordings, as `undertone models compare` prints it. */
function Matrix({ model, scores }: { readonly model: string; readonly scores: Scores }) {
  const { emotions, confusion, recordings, uar, accuracy, ece, overconfidence } = scores;
  return (
    <section class="matrix" aria-label={`Confusion matrix of ${model}`}>
      <div class="wide">
        <table>
          <caption>
            {model}: each label (row), per cent classified as (column), {recordings} recordings
          </caption>
          <thead>
            <tr>
              <td />
              {emotions.map((emotion) => (
                <th key={emotion} scope="col">
                  {emotion}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {confusion.map((row, i) => {
              const total = row.reduce((sum, count) => sum + count, 0);
              return (
                <tr key={emotions[i]}>
                  <th scope="row">
                    {emotions[i]} <span class="note">({total})</span>
                  </th>
                  {row.map((count, j) => {
                    const share = count / Math.max(1, total);
                    return (
                      <td
                        key={emotions[j]}
                        class={share > 0.55 ? 'strong' : ''}
                        style={{
                          background: `color-mix(in srgb, var(--matrix) ${Math.round(share * 100)}%, transparent)`,
                        }}
                      >
                        {count === 0 ? '·' : Math.round(share * 100)}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <dl class="figures">
        {Object.entries({
          UAR: uar,
          Accuracy: accuracy,
          'Calibration error': ece,
          'Confidence − accuracy': overconfidence,
        }).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{percent(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
