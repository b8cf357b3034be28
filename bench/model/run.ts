/** Times the shipped model and the float32 Whisper base encoder. See ../README.md. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Classifier, DEFAULT_MODELS_DIR, pickWeights, readCatalog } from '@undertone/classifier';
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { openSession } from '../../packages/classifier/src/session.ts';

const { values: options } = parseArgs({
  options: {
    weights: { type: 'string', default: 'research' },
    baseline: { type: 'string' },
    repeat: { type: 'string', default: '15' },
    json: { type: 'string' },
  },
});
const repeat = Number(options.repeat);
if (!Number.isInteger(repeat) || repeat < 1) throw new RangeError('--repeat must be a positive integer');

interface Timing {
  seconds: number;
  threads: number;
  batch: number;
  /** Milliseconds per window: best and median of all repeats. */
  model: Summary;
  baseline?: Summary;
  /** How many times faster than the baseline, by the best times. */
  speedUp?: number;
}

interface Summary {
  best: number;
  median: number;
}

const round = (value: number) => Math.round(value * 100) / 100;

function summary(times: number[]): Summary {
  const sorted = times.toSorted((a, b) => a - b);
  return { best: round(sorted[0] ?? 0), median: round(sorted[sorted.length >> 1] ?? 0) };
}

/** A sound that is not silence, the same in every run. */
function hum(samples: number): Float32Array {
  return Float32Array.from({ length: samples }, (_, i) => 0.2 * Math.sin(i / 20) * Math.sin(i / 3_000));
}

async function timeOnce(session: InferenceSession, samples: Tensor, batch: number): Promise<number> {
  const started = performance.now();
  await session.run({ samples });
  return (performance.now() - started) / batch;
}

async function timings(modelPath: string, baselinePath: string | undefined): Promise<Timing[]> {
  const rows: Timing[] = [];
  for (const threads of [1, 2]) {
    const model = await openSession(modelPath, threads);
    const baseline = baselinePath === undefined ? undefined : await openSession(baselinePath, threads);
    for (const seconds of [5, 10]) {
      for (const batch of [1, 8]) {
        const length = seconds * 16_000;
        const samples = new Tensor('float32', hum(batch * length), [batch, length]);
        const times: { model: number[]; baseline: number[] } = { model: [], baseline: [] };
        await timeOnce(model, samples, batch);
        if (baseline !== undefined) await timeOnce(baseline, samples, batch);
        for (let i = 0; i < Math.max(3, Math.ceil(repeat / batch)); i++) {
          times.model.push(await timeOnce(model, samples, batch));
          if (baseline !== undefined) times.baseline.push(await timeOnce(baseline, samples, batch));
        }
        const row: Timing = { seconds, threads, batch, model: summary(times.model) };
        if (baseline !== undefined) {
          row.baseline = summary(times.baseline);
          row.speedUp = round(row.baseline.best / row.model.best);
        }
        rows.push(row);
      }
    }
    await model.release();
    await baseline?.release();
  }
  return rows;
}

async function memory(path: string): Promise<Record<string, number>> {
  const child = fileURLToPath(new URL('./memory.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [child, path]);
  return JSON.parse(stdout);
}

/** Overhead of the classifier for one window without other load: checks, hand-over, wake-ups, answer. */
async function overheadMs(weights: string): Promise<Summary> {
  const classifier = await Classifier.start({ weights, workers: 1 });
  const window = hum(80_000);
  const times: number[] = [];
  for (let i = 0; i < 2 * repeat; i++) {
    const started = performance.now();
    const { timings } = await classifier.classifyWindow(window, { priority: 'discrete' });
    times.push(performance.now() - started - timings.inferenceMs);
  }
  await classifier.close();
  return summary(times);
}

const { weights } = options;
const entry = pickWeights(await readCatalog(), weights);
const modelPath = join(DEFAULT_MODELS_DIR, entry.file);
const machine = `${process.platform} ${process.arch}, ${cpus().length} x ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;

const report = {
  machine,
  weights,
  sha256: entry.sha256,
  timings: await timings(modelPath, options.baseline),
  classifierOverheadMs: await overheadMs(weights),
  residentMB: {
    model: await memory(modelPath),
    ...(options.baseline === undefined ? {} : { baseline: await memory(options.baseline) }),
  },
};

console.log(`${machine}; weights "${weights}"\n`);
console.log(
  '| window | threads | batch | model, ms per window | Whisper base float32, ms per window | speed-up |',
);
console.log('|---|---|---|---|---|---|');
const show = (time: Summary | undefined) =>
  time === undefined ? '-' : `${time.best} (median ${time.median})`;
for (const row of report.timings) {
  const cells = [
    `${row.seconds} s`,
    row.threads,
    row.batch,
    show(row.model),
    show(row.baseline),
    row.speedUp ?? '-',
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
console.log('\n| resident MB | empty process | loaded | after 5 s | after 10 s | after 8 x 10 s |');
console.log('|---|---|---|---|---|---|');
for (const [name, figures] of Object.entries(report.residentMB)) {
  console.log(`| ${[name, ...Object.values(figures)].join(' | ')} |`);
}
console.log(`\nThe classifier adds ${show(report.classifierOverheadMs)} ms to a window.\n`);
console.log(JSON.stringify(report));
if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
