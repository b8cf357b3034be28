import { DISCRETE_LIMITS } from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import { JsonStringReader } from './json-string-reader.ts';

const SHAPE = 'the body must be {"payload": [[0.01, -0.02, ...]]}, as an object or as a JSON string of it';

const HEAD = /^\s*\{\s*"payload"\s*:\s*\[\s*\[/;
const TAIL = /^\s*\]\s*\}\s*$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Nothing but blanks can make head, tail or one number longer than this. */
const MAX_TOKEN = 1024;

/**
 * Reads the JSON form of a clip as it arrives. Four megabytes of digits would hold the event loop for a tenth
 * of a second if they were parsed at once, and need five times their size in memory; this way neither happens.
 *
 * States: head (`{"payload": [[`) -> samples -> tail (`]}`).
 */
export class SamplesParser {
  readonly #samples: Float32Array;
  readonly #unquote = new JsonStringReader();
  #state: 'head' | 'samples' | 'tail' = 'head';
  #pending = '';
  #count = 0;

  /** More samples than `capacity` are counted, not kept. */
  constructor(capacity: number) {
    this.#samples = new Float32Array(capacity);
  }

  push(chunk: Buffer): void {
    // Outside ASCII nothing is valid, and one character for each byte is the fastest way to text.
    this.#read(this.#unquote.push(chunk.toString('latin1')));
  }

  /** How many samples there were, and those that were kept. */
  end(): { count: number; samples: Float32Array } {
    this.#unquote.end();
    if (this.#state !== 'tail' || !TAIL.test(this.#pending))
      throw wrong(`This is not a complete clip: ${SHAPE}.`);
    return { count: this.#count, samples: this.#samples.subarray(0, this.#count) };
  }

  #read(text: string): void {
    this.#pending += text;
    if (this.#state === 'head') this.#readHead();
    if (this.#state === 'samples') this.#readSamples();
    if (this.#state === 'tail' && this.#pending.length > 2) this.#checkTail();
    if (this.#pending.length > MAX_TOKEN) throw wrong(`This is not a clip: ${SHAPE}.`);
  }

  #readHead(): void {
    const head = HEAD.exec(this.#pending);
    if (head === null) return;
    this.#pending = this.#pending.slice(head[0].length);
    this.#state = 'samples';
  }

  #readSamples(): void {
    const close = this.#pending.indexOf(']');
    const complete = close >= 0 ? close : this.#pending.lastIndexOf(',');
    if (complete < 0) return;
    const text = this.#pending.slice(0, complete);
    this.#pending = this.#pending.slice(complete + 1);
    if (close >= 0) this.#state = 'tail';
    if (close >= 0 && this.#count === 0 && text.trim() === '') return;
    for (const token of text.split(',')) this.#take(token.trim());
  }

  #take(token: string): void {
    const value = NUMBER.test(token) ? Number(token) : Number.NaN;
    const at = `payload[0][${this.#count}]`;
    if (!Number.isFinite(value)) {
      const reason = token.includes('[') ? 'an array within the array' : 'not a finite number';
      throw wrong(`${at} is ${reason}: ${SHAPE}.`);
    }
    const most = DISCRETE_LIMITS.maxSampleMagnitude;
    if (Math.abs(value) > most) {
      throw wrong(`${at} is larger than ${most}: samples lie between -1 and 1; divide 16-bit ones by 32768.`);
    }
    if (this.#count < this.#samples.length) this.#samples[this.#count] = Math.min(1, Math.max(-1, value));
    this.#count++;
  }

  #checkTail(): void {
    if (/^\s*,/.test(this.#pending))
      throw wrong('payload holds more than one array; send one clip at a time, in mono.');
    if (/^\s*\]\s*,/.test(this.#pending)) throw wrong(`payload must be the only key: ${SHAPE}.`);
  }
}

function wrong(detail: string): ProblemError {
  return new ProblemError('bad_request', detail);
}
