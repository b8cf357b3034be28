import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DISCRETE_ANSWER } from '@undertone/testing/flaky-server';
import { clientWithoutWaits, flakyServer } from './support/clients.ts';

const FORMAT_B_SAMPLES = 198_450;

function sine(length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => Math.sin(i / 20) / 2);
}

/** The WAV in a form: its header fields and samples. */
function readWav(form: Buffer) {
  const wav = form.subarray(form.indexOf('RIFF'));
  const bytes = wav.readUInt32LE(40);
  const samples = Float32Array.from({ length: bytes / 4 }, (_, i) => wav.readFloatLE(44 + 4 * i));
  return {
    riffBytes: wav.readUInt32LE(4),
    format: wav.readUInt16LE(20),
    channels: wav.readUInt16LE(22),
    sampleRate: wav.readUInt32LE(24),
    bits: wav.readUInt16LE(34),
    samples,
  };
}

for (const sampleRate of [8_000, 16_000, 44_100, 192_000]) {
  test(`samples at ${sampleRate} Hz are sent completely, as a WAV`, async (t) => {
    const server = await flakyServer(t);
    const { client } = clientWithoutWaits(server.settings);
    const samples = sine(6 * sampleRate);
    assert.deepEqual(
      await client.discrete.samples(samples, { sampleRate, model: '5emotions' }),
      DISCRETE_ANSWER,
    );
    const [call] = server.calls('discrete');
    assert.match(call?.headers['content-type'] ?? '', /^multipart\/form-data/);
    assert.equal(call?.url.searchParams.get('model'), '5emotions');
    assert.deepEqual(readWav(call?.body ?? Buffer.alloc(0)), {
      ...{ riffBytes: 36 + 4 * samples.length, format: 3, channels: 1, sampleRate, bits: 32 },
      samples,
    });
  });
}

test('only samples with exactly the documented shape are sent as JSON', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  await client.discrete.samples(sine(FORMAT_B_SAMPLES));
  await client.discrete.samples(sine(FORMAT_B_SAMPLES + 1));
  await client.discrete.samples(sine(FORMAT_B_SAMPLES), { sampleRate: 22_050 });
  const types = server.calls('discrete').map(({ headers }) => headers['content-type']?.split(';')[0]);
  assert.deepEqual(types, ['application/json', 'multipart/form-data', 'multipart/form-data']);
});

test('16-bit samples keep their exact values', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const samples = Int16Array.from({ length: 5 * 16_000 }, (_, i) => (i * 7_919) % 65_536);
  await client.discrete.samples(samples, { sampleRate: 16_000 });
  const sent = readWav(server.calls('discrete')[0]?.body ?? Buffer.alloc(0)).samples;
  assert.deepEqual(
    Int16Array.from(sent, (value) => value * 32_768),
    samples,
  );
});

test('the length of samples is that at their rate, and an impossible rate is refused', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  await assert.rejects(
    client.discrete.samples(sine(5 * 44_100), { sampleRate: 96_000 }),
    /2\.30 seconds: pass 4 to 10/,
  );
  await assert.rejects(
    client.discrete.samples(sine(5 * 44_100), { sampleRate: 7 }),
    /sampleRate is 7: .* hertz/,
  );
  assert.equal(server.seen.length, 0);
});
