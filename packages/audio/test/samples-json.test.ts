import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { AudioError, readSamplesJson } from '../src/index.ts';

const read = (text: string): number[] => [...readSamplesJson(Buffer.from(text))];
const clipped = (list: readonly number[]): number[] => [
  ...Float32Array.from(list, (value) => Math.max(-1, Math.min(1, value))),
];

describe('prepared samples', () => {
  it('are read from an object and from a JSON string of it, values a little over 1 clipped', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { maxLength: 300 }),
        fc.constantFrom(undefined, 1, '\t'),
        fc.boolean(),
        (list, space, quoted) => {
          const object = JSON.stringify({ payload: [list] }, null, space);
          assert.deepEqual(
            read(quoted ? JSON.stringify(object) : object).map((value) => value + 0), // there are two zeros
            clipped(list).map((value) => value + 0),
          );
        },
      ),
      { seed: 1, numRuns: 300 },
    );
  });

  it('are read when every character of the string is escaped', () => {
    const object = JSON.stringify({ payload: [[0.5, -0.25]] });
    const escaped = Array.from(object, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    assert.deepEqual(read(`  "${escaped}"\n`), [0.5, -0.25]);
  });

  it('are refused with what is wrong and what to send, without a word of what came', () => {
    for (const [text, message] of [
      ['', /^The body is not valid JSON\. Send \{"payload": \[\[0\.01, -0\.02, \.\.\.\]\]\}/],
      ['{"payload": [[0.1, SECRET]]}', /not valid JSON/],
      ['"{\\"payload\\": [[0.1, \\q]]}"', /not valid JSON/],
      ['"SECRET"', /not valid JSON/],
      ['[[0.1]]', /no key "payload"/],
      ['null', /no key "payload"/],
      ['12', /no key "payload"/],
      ['{"SECRET": [[0.1]]}', /no key "payload"/],
      ['{"payload": [[0.1]], "SECRET": 1}', /must be the only key/],
      ['{"payload": [0.1, 0.2]}', /an array with one array/],
      ['{"payload": "SECRET"}', /an array with one array/],
      ['{"payload": []}', /an array with one array/],
      ['{"payload": [[0.1], [0.2]]}', /one recording at a time/],
      ['{"payload": [[0.1, [0.2]]]}', /payload\[0\]\[1\] is an array/],
      ['{"payload": [[0.1, "SECRET"]]}', /payload\[0\]\[1\] is not a number/],
      ['{"payload": [[null]]}', /payload\[0\]\[0\] is not a number/],
      ['{"payload": [[0.1, 1e999]]}', /payload\[0\]\[1\] is larger than 2/],
      ['{"payload": [[0, 0, -2.01]]}', /payload\[0\]\[2\] is larger than 2.*divide 16-bit ones by 32768/],
      [`${'['.repeat(100_000)}`, /not valid JSON/],
    ] as const) {
      assert.throws(
        () => read(text),
        (error: unknown) => {
          assert.ok(error instanceof AudioError && error.code === 'bad_request', String(error));
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /SECRET/);
          return true;
        },
      );
    }
  });

  it('are either refused or mean the same to JSON.parse, in 3000 mutations', () => {
    const valid = JSON.stringify({ payload: [[0.1, -0.2, 1e-3, 0]] });
    const mutated = fc
      .tuple(
        fc.constantFrom(valid, JSON.stringify(valid)),
        fc.nat(60),
        fc.nat(4),
        fc.string({ maxLength: 4 }),
      )
      .map(([text, at, drop, insert]) => text.slice(0, at) + insert + text.slice(at + drop));
    fc.assert(
      fc.property(mutated, (text) => {
        let samples: number[];
        try {
          samples = read(text);
        } catch (error) {
          assert.ok(error instanceof AudioError && error.code === 'bad_request', String(error));
          return;
        }
        let value: unknown = JSON.parse(text);
        if (typeof value === 'string') value = JSON.parse(value);
        assert.deepEqual(samples, clipped((value as { payload: [number[]] }).payload[0]));
      }),
      { seed: 2, numRuns: 3_000 },
    );
  });
});
