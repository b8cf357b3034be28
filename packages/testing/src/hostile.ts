import { BOUNDARY, FORM_TYPE, fileForm, form } from './form.ts';
import type { Random } from './random.ts';
import { wav, wavHeader } from './wav.ts';

export interface HostileRequest {
  /** What is wrong with it, for the report. */
  readonly kind: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The content-length to send, instead of the true one. */
  readonly announced?: number;
  /** Send chunked, without a length. */
  readonly chunked?: boolean;
  readonly query?: string;
}

const FORM = { 'content-type': FORM_TYPE };
const JSON_TYPE = { 'content-type': 'application/json' };
const GOOD_WAV = wav({ seconds: 4.2, rate: 8_000 });
const ODD_NUMBERS = [
  0, 1, 2, 3, 7, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
];

const makers: readonly ((random: Random) => HostileRequest)[] = [
  function mutatedWavHeader(random) {
    const file = Buffer.from(GOOD_WAV);
    for (let i = random.integer(1, 6); i > 0; i--) {
      const at = random.integer(0, 43);
      if (random.next() < 0.5) file[at] = random.integer(0, 255);
      else file.writeUInt32LE(random.pick(ODD_NUMBERS), Math.min(at, 40));
    }
    return { kind: 'mutated WAV header', headers: FORM, body: fileForm(file) };
  },
  function mutatedWavAnywhere(random) {
    const file = Buffer.from(GOOD_WAV);
    for (let i = random.integer(1, 200); i > 0; i--)
      file[random.integer(0, file.length - 1)] = random.integer(0, 255);
    const cut = file.subarray(0, random.integer(0, file.length));
    return { kind: 'damaged or cut WAV', headers: FORM, body: fileForm(cut) };
  },
  function hugeClaims(random) {
    const header = wavHeader({
      format: random.pick([1, 3, 6, 7, 0xfffe]),
      rate: random.pick([8_000, 44_100, 192_000, 0, 0xffffffff]),
      channels: random.pick([1, 2, 0, 255, 65_535]),
      bits: random.pick([0, 1, 8, 16, 24, 32, 64, 65_535]),
      dataBytes: random.pick([0xffffffff, 0x80000000, 0xfffffff0, 0]),
    });
    return {
      kind: 'WAV that claims 4 GB',
      headers: FORM,
      body: fileForm(Buffer.concat([header, random.bytes(random.integer(0, 5_000))])),
    };
  },
  function chunkMaze(random) {
    const chunks = Array.from({ length: random.integer(1, 30) }, () => {
      const chunk = Buffer.alloc(8);
      chunk.write(
        random.pick(['LIST', 'fmt ', 'data', 'ds64', 'fact', 'junk', '\0\0\0\0', 'RIFF']),
        0,
        'latin1',
      );
      chunk.writeUInt32LE(random.pick([...ODD_NUMBERS, random.integer(0, 60)]), 4);
      return Buffer.concat([chunk, random.bytes(random.integer(0, 60))]);
    });
    const start = Buffer.from(`${random.pick(['RIFF', 'RF64', 'RIFX', 'BW64'])}\0\0\0\0WAVE`, 'latin1');
    return { kind: 'maze of chunks', headers: FORM, body: fileForm(Buffer.concat([start, ...chunks])) };
  },
  function notFiniteWav(random) {
    const bits = random.pick([32, 64]);
    const samples = new Array(8_000 * 5).fill(0.1);
    for (let i = 0; i < 50; i++) {
      samples[random.integer(0, samples.length - 1)] = random.pick([
        Number.NaN,
        Infinity,
        -Infinity,
        1e38,
        -1e300,
      ]);
    }
    const data = Buffer.from((bits === 32 ? Float32Array : Float64Array).from(samples).buffer);
    const header = wavHeader({ format: 3, rate: 8_000, channels: 1, bits, dataBytes: data.length });
    return { kind: 'NaN in a float WAV', headers: FORM, body: fileForm(Buffer.concat([header, data])) };
  },
  function foreignMagic(random) {
    const magic = random.pick([
      'OggS',
      'fLaC',
      'ID3\x03',
      '\x1aE\xdf\xa3',
      '\0\0\0\x20ftypM4A ',
      '#EXTM3U\n',
      'FORM\0\0\0\0AIFF',
    ]);
    const file = Buffer.concat([Buffer.from(magic, 'latin1'), random.bytes(random.integer(0, 3_000))]);
    return { kind: 'start of another format', headers: FORM, body: fileForm(file) };
  },
  function brokenForm(random) {
    const body = Buffer.from(fileForm(GOOD_WAV.subarray(0, 2_000)));
    for (let i = random.integer(1, 20); i > 0; i--) {
      const near = random.next() < 0.7 ? random.integer(0, 160) : random.integer(0, body.length - 1);
      body[near] = random.integer(0, 255);
    }
    return { kind: 'broken form', headers: FORM, body: body.subarray(0, random.integer(0, body.length)) };
  },
  function endlessForm(random) {
    const part = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${'n'.repeat(random.integer(0, 300))}"\r\n\r\nx\r\n`;
    return {
      kind: 'form without end',
      headers: FORM,
      body: Buffer.from(part.repeat(random.integer(50, 2_000))),
    };
  },
  function endlessPartHeaders(random) {
    const lines = `X-Header-${random.integer(0, 9)}: ${'y'.repeat(random.integer(0, 400))}\r\n`;
    const body = `--${BOUNDARY}\r\n${lines.repeat(random.integer(10, 1_000))}`;
    return { kind: 'part headers without end', headers: FORM, body: Buffer.from(body) };
  },
  function oddBoundary(random) {
    const boundary = random.pick(['', '"', '""', 'a'.repeat(500), '\u00e4', 'x;y=z', BOUNDARY.slice(0, -1)]);
    return {
      kind: 'odd boundary',
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
      body: fileForm(GOOD_WAV.subarray(0, 500)),
    };
  },
  function oddNames(random) {
    const name = random.pick([
      'file"',
      'file\\',
      'File',
      'file[]',
      '__proto__',
      'constructor',
      '',
      'f\u0000ile',
    ]);
    const fileName = random.pick([
      '../../../etc/passwd',
      '\\\\server\\share',
      'a'.repeat(5_000),
      '"',
      '%00',
      '\u202e',
    ]);
    return {
      kind: 'odd names',
      headers: FORM,
      body: form({ name, fileName, type: 'audio/wav', content: GOOD_WAV }),
    };
  },
  function wrongLength(random) {
    const body = fileForm(GOOD_WAV.subarray(0, 3_000));
    const announced = random.pick([
      body.length + random.integer(1, 5_000),
      2 ** 32,
      2 ** 40,
      Number.MAX_SAFE_INTEGER,
    ]);
    return { kind: 'wrong length', headers: random.pick([FORM, JSON_TYPE]), body, announced };
  },
  function wrongType(random) {
    const type = random.pick([
      'audio/wav',
      'text/plain',
      'application/xml',
      '',
      '*/*',
      'multipart/mixed; boundary=x',
      'application/json/json',
      'multipart/form-data',
      ';',
      'application/x-www-form-urlencoded',
    ]);
    return {
      kind: 'wrong content type',
      headers: { 'content-type': type },
      body: fileForm(GOOD_WAV.subarray(0, 800)),
    };
  },
  function encodedBody(random) {
    const headers = { ...FORM, 'content-encoding': random.pick(['gzip', 'br', 'deflate', 'zstd', 'x']) };
    return { kind: 'content encoding', headers, body: random.bytes(500) };
  },
  function deepJson(random) {
    const depth = random.integer(10, 20_000);
    const text = random.pick(['[', '{"payload":', '{"a":[', '"\\"', '[[']).repeat(depth);
    return { kind: 'deep JSON', headers: JSON_TYPE, body: Buffer.from(text) };
  },
  function oddSamples(random) {
    const odd = random.pick([
      'NaN',
      '-Infinity',
      '1e400',
      '1e-400',
      'null',
      'true',
      '"0"',
      '[0]',
      '{}',
      '0x10',
      '--1',
      '1.',
      '3',
      '-9e99',
      '',
    ]);
    const text = `{"payload": [[${'0.01,'.repeat(random.integer(0, 3_000))}${odd}${random.pick(['', ',0.1', ','])}]]}`;
    const body = random.next() < 0.5 ? text : JSON.stringify(text);
    return { kind: 'odd samples', headers: JSON_TYPE, body: Buffer.from(body) };
  },
  function oddJson(random) {
    const text = random.pick([
      '',
      ' ',
      '"',
      '""',
      'null',
      '0',
      '{}',
      '[]',
      '{"payload":{}}',
      '{"payload":[[]]}',
      '{"payload":[]}',
      '{"__proto__":[[0]]}',
      '"\\u00"',
      '"\\q"',
      '\ufeff{"payload":[[0]]}',
      '{"payload":[[0]]}}',
      '"{\\"payload\\":[[0]]}" 1',
    ]);
    return { kind: 'odd JSON', headers: JSON_TYPE, body: Buffer.from(text) };
  },
  function brokenText(random) {
    const body = Buffer.from(JSON.stringify(JSON.stringify({ payload: [[0.1, 0.2, -0.3]] })));
    for (let i = random.integer(1, 5); i > 0; i--)
      body[random.integer(0, body.length - 1)] = random.integer(0, 255);
    return { kind: 'broken JSON text', headers: JSON_TYPE, body };
  },
  function noise(random) {
    const headers = random.pick([FORM, JSON_TYPE]);
    return {
      kind: 'noise',
      headers,
      body: random.bytes(random.integer(0, 3_000)),
      chunked: random.next() < 0.5,
    };
  },
  function oddQuery(random) {
    const query = random.pick([
      'model=',
      'model=%00',
      'model[]=4emotions',
      'model=4emotions&model=5emotions',
      `model=${'x'.repeat(3_000)}`,
      'model=%E0%A4%A',
      '__proto__=1',
      'model=toString',
    ]);
    return { kind: 'odd query', headers: FORM, body: fileForm(GOOD_WAV.subarray(0, 100)), query };
  },
];

/** One damaged or hostile request. The kinds rotate with `turn`. */
export function hostileRequest(random: Random, turn: number): HostileRequest {
  const make = makers[turn % makers.length] as (random: Random) => HostileRequest;
  return make(random);
}
