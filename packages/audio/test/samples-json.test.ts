import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { AudioError, readSamplesJson } from '../src/index.ts';

const read = (text: string): number[] => [...readSamplesJson(Buffer.from(text))];
/** Four seconds that start with the values under test. */
const four = (list: readonly number[]): number[] => [...list, ...new Array(4 * 44_100).fill(0)];
const clipped = (list: readonly number[]): number[] => [
  ...Float32Array.from(list, (value) => Math.max(-1, Math.min(1, value))),
];

describe('JSON samples', () => {
  it('are read from an object or a JSON string of it; values slightly over 1 are clipped', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -2, max: 2, noNaN: true }), { maxLength: 300 }),
        fc.constantFrom(undefined, 1, '\t'),
        fc.boolean(),
        (list, space, quoted) => {
          const object = JSON.stringify({ payload: [four(list)] }, null, space);
          const samples = read(quoted ? JSON.stringify(object) : object);
          assert.equal(samples.length, 4 * 44_100 + list.length);
          assert.deepEqual(
            samples.slice(0, list.length).map((value) => value + 0), // there are two zeros
            clipped(list).map((value) => value + 0),
          );
        },
      ),
      { seed: 1, numRuns: 15 },
    );
  });

  it('are read when every character of the string is escaped', () => {
    const object = JSON.stringify({ payload: [four([0.5, -0.25])] });
    const escaped = Array.from(object, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    assert.deepEqual(read(`  "${escaped}"\n`).slice(0, 3), [0.5, -0.25, 0]);
  });

  it('are refused with the mistake and what to send, without quoting the body', () => {
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

  it('are refused outside 4 to 10 s, with the figures', () => {
    const payload = (seconds: number) => JSON.stringify({ payload: [new Array(seconds * 44_100).fill(0)] });
    const figures = (actual_seconds: number) => ({ min_seconds: 4, max_seconds: 10, actual_seconds });
    assert.throws(() => read(payload(3)), { code: 'audio_too_short', figures: figures(3) });
    assert.throws(() => read(payload(12)), { code: 'audio_too_long', figures: figures(12) });
    assert.equal(read(payload(10)).length, 441_000);
  });

  it('are refused before parsing if that would take a hundred times their size in memory', (t) => {
    const escaped = (text: string) =>
      JSON.stringify(text).replaceAll('[', '\\u005b').replaceAll(',', '\\u002c');
    const brackets = `{"payload":[${'[],'.repeat(200)}[]]}`;
    const commas = `{"payload":[[${'0,'.repeat(500_000)}0]]}`;
    const parse = t.mock.method(JSON, 'parse');
    for (const [text, code, parses] of [
      [brackets, 'bad_request', 0],
      [commas, 'audio_too_long', 0],
      [escaped(brackets), 'bad_request', 1],
      [escaped(commas), 'audio_too_long', 1],
    ] as const) {
      parse.mock.resetCalls();
      assert.throws(() => readSamplesJson(Buffer.from(text)), { name: 'AudioError', code });
      assert.equal(parse.mock.callCount(), parses, 'only the outer string was parsed');
    }
  });

  it('are refused or read as by JSON.parse, in 300 mutations', () => {
    const zeros = ',0'.repeat(4 * 44_100);
    const mutated = fc
      .tuple(fc.boolean(), fc.nat(45), fc.nat(4), fc.string({ maxLength: 4 }))
      .map(([quoted, at, drop, insert]) => {
        const start = '{"payload":[[0.1,-0.2,0.001,0.25';
        const text = quoted ? JSON.stringify(`${start}X]]}`) : `${start}X]]}`;
        return (text.slice(0, at) + insert + text.slice(at + drop)).replace('X', zeros);
      });
    let refused = 0;
    fc.assert(
      fc.property(mutated, (text) => {
        let samples: number[];
        try {
          samples = read(text);
        } catch (error) {
          assert.ok(error instanceof AudioError, String(error));
          refused++;
          return;
        }
        let value: unknown = JSON.parse(text);
        if (typeof value === 'string') value = JSON.parse(value);
        assert.deepEqual(
          samples.slice(0, 9),
          clipped((value as { payload: [number[]] }).payload[0].slice(0, 9)),
        );
      }),
      { seed: 2, numRuns: 300 },
    );
    assert.ok(refused > 50 && refused < 290, `${refused} of 300 refused`);
  });
});
