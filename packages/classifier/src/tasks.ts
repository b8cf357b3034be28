/** What an inference thread does with each kind of task. */
import {
  decodeBlock,
  LONGEST_CLIP_SAMPLES,
  MODEL_SAMPLE_RATE,
  readSamplesJson,
  resampleAll,
} from '@undertone/audio';
import { DISCRETE_LIMITS } from '@undertone/contract';
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { ModelEntry } from './catalog.ts';
import type { Classified, Outcome, Task } from './protocol.ts';

/** Name of the graph's input, and of the output with the share of the window that is speech. */
const SAMPLES_INPUT = 'samples';
const SPEECH_OUTPUT = 'speech';

export class TaskRunner {
  readonly #session: InferenceSession;
  readonly #models: readonly ModelEntry[];
  readonly #outputs: string[];

  constructor(session: InferenceSession, models: readonly ModelEntry[]) {
    this.#session = session;
    this.#models = models;
    this.#outputs = [...models.map(({ id }) => id), SPEECH_OUTPUT];
    const missing = this.#outputs.find((name) => !session.outputNames.includes(name));
    if (missing !== undefined) {
      throw new Error(`the graph has no output "${missing}", which the catalogue names`);
    }
  }

  async run(task: Task): Promise<Outcome> {
    const started = performance.now();
    switch (task.kind) {
      case 'decode':
        return { channels: decodeBlock(task) };
      case 'clip': {
        const [samples] = decodeBlock(task) as [Float32Array];
        return this.#classify(samples, samples.length / MODEL_SAMPLE_RATE, started);
      }
      case 'json': {
        const payload = readSamplesJson(task.data);
        const rate = DISCRETE_LIMITS.payloadSampleRate;
        const samples = resampleAll(payload, rate).subarray(0, LONGEST_CLIP_SAMPLES);
        return this.#classify(samples, payload.length / rate, started);
      }
      case 'window':
        return this.#classify(task.data, task.data.length / MODEL_SAMPLE_RATE, started);
    }
  }

  async #classify(samples: Float32Array, seconds: number, started: number): Promise<Classified> {
    const input = new Tensor('float32', samples, [1, samples.length]);
    const begun = performance.now();
    const results = await this.#session.run({ [SAMPLES_INPUT]: input }, this.#outputs);
    const inferenceMs = performance.now() - begun;
    const models = this.#models.map(({ id, emotions }) => {
      const values = readOutput(results, id, emotions.length);
      return [id, Object.fromEntries(emotions.map((emotion, i) => [emotion, values[i] as number]))];
    });
    const [speech = 0] = readOutput(results, SPEECH_OUTPUT, 1);
    return {
      models: Object.fromEntries(models),
      speechSeconds: (Math.min(1, Math.max(0, speech)) * samples.length) / MODEL_SAMPLE_RATE,
      seconds,
      decodeMs: begun - started,
      inferenceMs,
    };
  }
}

function readOutput(results: InferenceSession.ReturnType, name: string, columns: number): Float32Array {
  const data = results[name]?.data;
  if (!(data instanceof Float32Array) || data.length !== columns) {
    throw new Error(`output "${name}" of the graph does not have the shape that the catalogue says`);
  }
  if (!data.every(Number.isFinite)) throw new Error('the model gave no finite number');
  return data;
}
