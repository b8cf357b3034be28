import { ProblemError } from '../problems.ts';

const ESCAPES: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * Takes JSON text that may be a string with the real JSON inside, and gives back what is inside; any other text
 * passes unchanged. Works on pieces of text cut anywhere.
 *
 * States: start -> plain, or start -> string -> after.
 */
export class JsonStringReader {
  #state: 'start' | 'plain' | 'string' | 'after' = 'start';
  /** An escape that the last piece cut in two. */
  #cut = '';

  push(text: string): string {
    if (this.#state === 'start') {
      const first = text.search(/\S/);
      if (first < 0) return text;
      this.#state = text[first] === '"' ? 'string' : 'plain';
      if (this.#state === 'string') return this.#inside(text.slice(first + 1));
    }
    if (this.#state === 'string') return this.#inside(text);
    if (this.#state === 'after') checkBlank(text);
    return this.#state === 'after' ? '' : text;
  }

  end(): void {
    if (this.#state === 'string') throw wrong('The JSON string is not closed.');
  }

  #inside(piece: string): string {
    let text = this.#cut + piece;
    this.#cut = '';
    const parts: string[] = [];
    for (;;) {
      const at = text.search(/["\\]/);
      if (at < 0) return parts.join('') + text;
      parts.push(text.slice(0, at));
      if (text[at] === '"') {
        this.#state = 'after';
        checkBlank(text.slice(at + 1));
        return parts.join('');
      }
      const length = text[at + 1] === 'u' ? 6 : 2;
      if (text.length < at + length) {
        this.#cut = text.slice(at);
        return parts.join('');
      }
      parts.push(meaningOf(text.slice(at, at + length)));
      text = text.slice(at + length);
    }
  }
}

function meaningOf(sequence: string): string {
  const known = ESCAPES[sequence.charAt(1)];
  if (known !== undefined) return known;
  if (!/^\\u[0-9a-fA-F]{4}$/.test(sequence)) throw wrong('The JSON string holds an escape that is none.');
  return String.fromCharCode(Number.parseInt(sequence.slice(2), 16));
}

function checkBlank(text: string): void {
  if (text.trim() !== '') throw wrong('Something follows the JSON string.');
}

function wrong(detail: string): ProblemError {
  return new ProblemError('bad_request', detail);
}
