import type { Scores } from '@undertone/contract';
import { percent } from '../bars.ts';

const CELL = 44;
const LABELS = 92;
const PLOT = 220;
const [INK, BLUE, GREY] = ['#1f2933', '#2f6fab', '#9aa5b1'];

/** An SVG with one row per set of weights: the confusion matrix, and accuracy over confidence. */
export function draw(model: string, compared: ReadonlyMap<string, Scores>): string {
  const size = Math.max(...[...compared.values()].map(({ emotions }) => emotions.length));
  const rowHeight = Math.max(LABELS + size * CELL, LABELS + PLOT) + 40;
  const width = LABELS + size * CELL + 80 + PLOT + 40;
  const height = 30 + rowHeight * compared.size;
  const rows = [...compared].map(([name, scores], i) => {
    const title = `${name}, ${model}: UAR ${percent(scores.uar)}, calibration error ${percent(scores.ece)}, ${scores.recordings} recordings`;
    return `<g transform="translate(0 ${30 + i * rowHeight})">${text(12, 8, title, 'font-weight="bold"')}
${confusion(scores)}<g transform="translate(${LABELS + size * CELL + 80} ${LABELS})">${reliability(scores)}</g></g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="${INK}">
<rect width="${width}" height="${height}" fill="white"/>
${rows.join('\n')}
</svg>
`;
}

function confusion({ emotions, confusion }: Scores): string {
  const cells = confusion.flatMap((row, i) => {
    const total = Math.max(
      1,
      row.reduce((sum, count) => sum + count, 0),
    );
    return row.map((count, j) => {
      const share = count / total;
      const [x, y] = [LABELS + j * CELL, LABELS + i * CELL];
      const ink = share > 0.6 ? 'fill="white"' : '';
      return `<rect x="${x}" y="${y}" width="${CELL}" height="${CELL}" fill="${BLUE}" fill-opacity="${share.toFixed(3)}" stroke="${GREY}" stroke-width="0.5"/>${
        count > 0
          ? text(x + CELL / 2, y + CELL / 2 + 4, `${Math.round(share * 100)}`, `text-anchor="middle" ${ink}`)
          : ''
      }`;
    });
  });
  const names = emotions.flatMap((emotion, i) => {
    const middle = LABELS + i * CELL + CELL / 2;
    return [
      text(LABELS - 8, middle + 4, emotion, 'text-anchor="end"'),
      text(0, 0, emotion, `transform="translate(${middle} ${LABELS - 8}) rotate(-45)"`),
    ];
  });
  const foot = text(
    LABELS,
    LABELS + emotions.length * CELL + 18,
    'rows: true emotion; columns: predicted (per cent)',
  );
  return [...cells, ...names, foot].join('');
}

function reliability({ reliability, recordings }: Scores): string {
  const dots = reliability.map(({ count, confidence, accuracy }) => {
    const radius = 3 + 14 * Math.sqrt(count / Math.max(1, recordings));
    return `<circle cx="${(confidence * PLOT).toFixed(1)}" cy="${((1 - accuracy) * PLOT).toFixed(1)}" r="${radius.toFixed(1)}" fill="${BLUE}" fill-opacity="0.8"/>`;
  });
  return `<path d="M0 ${PLOT}L${PLOT} 0" stroke="${GREY}" stroke-dasharray="4"/><path d="M0 0V${PLOT}H${PLOT}" fill="none" stroke="${INK}"/>
${dots.join('')}${text(PLOT / 2, PLOT + 18, 'confidence', 'text-anchor="middle"')}${text(0, -8, 'accuracy')}`;
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`;
}
