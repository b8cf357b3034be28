// Sends one file, with the client or with bare HTTP, and prints seconds and peak memory. Started by run.ts.
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { request } from 'node:http';
import { API_KEY_HEADER, ASYNCH_PATHS, CLIENT_LIMITS, type InitiateResult } from '@undertone/contract';
import type * as sdk from '@undertone/sdk';

const [how, path = '', size = '0', library = '', apiKey = '', asynchUrl = ''] = process.argv.slice(2);

let peak = 0;
const sampling = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 5);
const started = performance.now();
const requestId = how === 'client' ? await withClient() : await withBareHttp();
const seconds = (performance.now() - started) / 1000;
clearInterval(sampling);
process.stdout.write(JSON.stringify({ requestId, seconds, peakMiB: Math.round(peak / 2 ** 20) }));

async function withClient(): Promise<string> {
  const { EmotionClient } = (await import(library)) as typeof sdk;
  return new EmotionClient({ apiKey, asynchUrl }).asynch.upload(path);
}

async function withBareHttp(): Promise<string> {
  const bytes = Number(size);
  const partSize = CLIENT_LIMITS.partSize.default;
  const query = `file_name=talk.wav&part_count=${Math.ceil(bytes / partSize)}`;
  const key = { [API_KEY_HEADER]: apiKey };
  const answer = await fetch(`${asynchUrl}${ASYNCH_PATHS.initiate}?${query}`, {
    method: 'POST',
    headers: key,
  });
  const { request_id, upload_id, presigned_urls } = (await answer.json()) as InitiateResult;
  const parts: { PartNumber: number; ETag: string }[] = [];
  const waiting = presigned_urls.values();
  const lane = async () => {
    for (const { part_number, url } of waiting) {
      const start = (part_number - 1) * partSize;
      const end = Math.min(start + partSize, bytes);
      const put = request(url, { method: 'PUT', headers: { 'content-length': end - start } });
      createReadStream(path, { start, end: end - 1, highWaterMark: 256 * 1024 }).pipe(put);
      const [response] = await once(put, 'response');
      response.resume();
      parts.push({ PartNumber: part_number, ETag: response.headers.etag });
    }
  };
  await Promise.all(Array.from({ length: CLIENT_LIMITS.maxThreads.default }, lane));
  parts.sort((a, b) => a.PartNumber - b.PartNumber);
  const body = JSON.stringify({ request_id, upload_id, parts });
  const headers = { ...key, 'content-type': 'application/json' };
  const complete = await fetch(`${asynchUrl}${ASYNCH_PATHS.complete}`, { method: 'POST', headers, body });
  if (!complete.ok) throw new Error(await complete.text());
  return request_id;
}
