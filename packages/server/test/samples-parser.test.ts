import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SamplesParser } from '../src/discrete/samples-parser.ts';
import { ProblemError } from '../src/problems.ts';

function parse(text: string, pieceLengths: readonly number[] = []): { count: number; samples: Float32Array } {
  const parser = new SamplesParser(1_000);
  const bytes = Buffer.from(text);
  let at = 0;
  for (const length of pieceLengths) {
    parser.push(bytes.subarray(at, at + length));
    at += length;
  }
  parser.push(bytes.subarray(at));
  return parser.end();
}

const samples = fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { maxLength: 300 });
const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 200 });
const indent = fc.constantFrom(undefined, 1, '\t');

describe('samples that arrive in pieces', () => {
  test('are the same as when parsed at once, as an object and as a string of it', () => {
    fc.assert(
      fc.property(samples, pieces, indent, fc.boolean(), (list, lengths, space, quoted) => {
        const object = JSON.stringify({ payload: [list] }, null, space);
        const { count, samples: read } = parse(quoted ? JSON.stringify(object) : object, lengths);
        assert.equal(count, list.length);
        const clipped = list.map((value) => Math.max(-1, Math.min(1, value)));
        assert.deepEqual(
          Array.from(read, (value) => value + 0),
          Array.from(Float32Array.from(clipped), (value) => value + 0),
        );
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  test('are read when every character of the string is escaped', () => {
    const object = JSON.stringify({ payload: [[0.5, -0.25]] });
    const escaped = Array.from(object, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    for (const length of [1, 2, 3, 5, 7]) {
      const read = parse(`  "${escaped}"\n`, new Array(30).fill(length));
      assert.deepEqual([...read.samples], [0.5, -0.25]);
    }
  });

  test('beyond the capacity are counted but not kept', () => {
    const { count, samples: kept } = parse(JSON.stringify({ payload: [new Array(1_500).fill(0)] }));
    assert.equal(count, 1_500);
    assert.equal(kept.length, 1_000);
  });
});

describe('text that is no clip', () => {
  test('is either refused as a bad request or means the same to JSON.parse', () => {
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
      fc.property(mutated, pieces, (text, lengths) => {
        let read: number[];
        try {
          read = [...parse(text, lengths).samples];
        } catch (error) {
          assert.ok(error instanceof ProblemError && error.code === 'bad_request', String(error));
          return;
        }
        let value: unknown = JSON.parse(text);
        if (typeof value === 'string') value = JSON.parse(value);
        const { payload } = value as { payload: [number[]] };
        const clipped = payload[0].map((number) => Math.max(-1, Math.min(1, number)));
        assert.deepEqual(read, [...Float32Array.from(clipped)]);
      }),
      { seed: 2, numRuns: 3_000 },
    );
  });

  test('is refused early, not held until it ends', () => {
    const parser = new SamplesParser(10);
    parser.push(Buffer.from('{"payload": [['));
    assert.throws(() => parser.push(Buffer.from('9'.repeat(5_000))), ProblemError);
  });
});
