// Classifies a recording both ways with nothing but the generated types and openapi-fetch; prints the answers as JSON.
// ./undertone-api.mts is generated beside a copy of this file, where the compiler checks both before they run.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './undertone-api.mts';

type Schemas = components['schemas'];

const [url = '', key = '', path = ''] = process.argv.slice(2);
const recording = await readFile(path);

function clientWith(apiKey: string): Client<paths> {
  return createClient<paths>({ baseUrl: url, headers: { 'x-api-key': apiKey } });
}

function classify(client: Client<paths>) {
  const file = new Blob([recording], { type: 'audio/wav' });
  return client.POST('/v1/discrete/emotion', {
    params: { query: { model: '5emotions', details: true } },
    body: { file },
    bodySerializer: () => {
      const form = new FormData();
      form.append('file', file);
      return form;
    },
  });
}

async function upload(client: Client<paths>): Promise<string> {
  const half = Math.floor(recording.length / 2);
  const pieces = [recording.subarray(0, half), recording.subarray(half)];
  const begun = await client.POST('/v1/asynch/upload/initiate', {
    params: { query: { file_name: 'voice.wav', part_count: pieces.length } },
  });
  const { request_id, upload_id, presigned_urls } = dataOf(begun);
  const parts: Schemas['CompleteBody']['parts'] = [];
  for (const [index, piece] of pieces.entries()) {
    const target = presigned_urls[index];
    if (target === undefined) throw new Error('a URL is missing');
    const query = new URL(target.url).searchParams;
    const { error, response } = await client.PUT('/v1/asynch/upload/{request_id}/parts/{part_number}', {
      params: {
        path: { request_id, part_number: target.part_number },
        query: { expires: Number(query.get('expires')), signature: query.get('signature') ?? '' },
      },
      headers: { 'content-type': 'application/octet-stream' },
      body: new Blob([piece]),
      bodySerializer: (body) => body,
    });
    if (error !== undefined) throw new Error(error.detail);
    parts.push({ PartNumber: target.part_number, ETag: response.headers.get('etag') ?? '' });
  }
  const done = await client.POST('/v1/asynch/upload/complete', { body: { request_id, upload_id, parts } });
  return dataOf(done).request_id;
}

async function waitFor(client: Client<paths>, request_id: string): Promise<Schemas['AsynchResult']> {
  for (;;) {
    const result = dataOf(await client.GET('/v1/asynch/prediction', { params: { query: { request_id } } }));
    if (result.status === 'completed') return result;
    await sleep(100);
  }
}

function dataOf<Data>({ data, error }: { data?: Data; error?: Schemas['Problem'] }): Data {
  if (data === undefined) throw new Error(error?.detail ?? 'no answer');
  return data;
}

/** What users rely on, written by hand, so that the compiler compares the generated types with it. */
interface Answers {
  refusal: string | undefined;
  discrete: {
    main_emotion: string;
    confidence: number;
    all_predictions: Record<string, number>;
    model?: string;
  };
  asynch: { request_id: string; emotions: { t: string; emotion: string; confidence: number }[] };
}

const client = clientWith(key);
const answers: Answers = {
  refusal: (await classify(clientWith('not-a-key'))).error?.code,
  discrete: dataOf(await classify(client)),
  asynch: await waitFor(client, await upload(client)),
};
console.log(JSON.stringify(answers));
