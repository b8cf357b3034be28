import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { ASYNCH_PATHS, DEFAULT_URL, PATHS } from '@undertone/contract';
import { testApp } from '@undertone/testing/app';
import { ROOT } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';
import { LONG_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { samplesOf } from '../src/openapi/samples.ts';

type Language = keyof ReturnType<typeof samplesOf>;

/** Runs the samples of a language one after another in one process; a line with `####` and its name comes before each. */
const RUNNERS: Record<Language, { suffix: string; command: readonly string[] }> = {
  curl: {
    suffix: 'sh',
    command: ['bash', '-c', 'for file in "$@"; do echo; echo "#### $file"; bash -e "$file" || echo FAILED; done', '-'],
  },
  TypeScript: {
    suffix: 'mjs',
    command: [
      ...[process.execPath, '--input-type=module', '--eval'],
      `for (const file of process.argv.slice(1)) {
         console.log('\\n#### ' + file);
         await import(file).catch((error) => console.log('FAILED', error));
       }`,
    ],
  },
  Python: {
    suffix: 'py',
    command: [
      ...[join(ROOT, 'clients/python/.venv/bin/python'), '-c'],
      `import runpy, sys, traceback
for file in sys.argv[1:]:
    print("\\n####", file, flush=True)
    try:
        runpy.run_path(file)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print("FAILED")`,
    ],
  },
};

const service = await testApp();
const { url } = await service.listen();
service.services.worker.start();
const document = (await service.app.inject({ url: PATHS.openapi })).json();
// Inside the clone, where Node and npx find the packages.
await mkdir(join(ROOT, 'node_modules/.cache'), { recursive: true });
const folder = await mkdtemp(join(ROOT, 'node_modules/.cache/samples-'));
after(() => rm(folder, { recursive: true, force: true }));
await writeFile(join(folder, 'voice.wav'), talkWav(6));
await writeFile(join(folder, 'talk.wav'), talkWav(6));
await writeFile(join(folder, '.curlrc'), 'silent\nshow-error\nfail-with-body\n');

/** Starts an upload with one part, and returns what the placeholders of a sample stand for. */
async function placeholders(): Promise<Record<string, string>> {
  const headers = { 'x-api-key': service.key };
  const initiate = `${PATHS.asynch}${ASYNCH_PATHS.initiate}?file_name=talk.wav&part_count=1`;
  const begun = await service.app.inject({ method: 'POST', url: initiate, headers });
  const { request_id, upload_id, presigned_urls } = begun.json();
  const part = new URL(presigned_urls[0].url);
  const body = talkWav(6);
  const put = await fetch(`${url}${part.pathname}${part.search}`, { method: 'PUT', body });
  return {
    REQUEST_ID: request_id,
    UPLOAD_ID: upload_id,
    MD5: String(put.headers.get('etag')).replaceAll('"', ''),
    EXPIRES: part.searchParams.get('expires') ?? '',
    SIGNATURE: part.searchParams.get('signature') ?? '',
  };
}

async function fill(sample: string): Promise<string> {
  let text = sample.replaceAll(DEFAULT_URL, url);
  for (const [name, value] of Object.entries(await placeholders())) text = text.replaceAll(name, value);
  return text;
}

for (const language of ['curl', 'TypeScript', 'Python'] as const) {
  test(`every ${language} sample works as written`, async () => {
    const { suffix, command } = RUNNERS[language];
    const files: string[] = [];
    for (const [path, methods] of Object.entries<object>(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const file = join(folder, `${operation.operationId}.${suffix}`);
        await writeFile(file, await fill(samplesOf(method, path, operation)[language]));
        files.push(file);
      }
    }
    const [program = '', ...args] = command;
    const { stdout } = await promisify(execFile)(program, [...args, ...files], {
      cwd: folder,
      env: { ...process.env, SERVICE_API_KEY: service.key, SERVICE_URL: url, CURL_HOME: folder },
      timeout: LONG_TIMEOUT_MS,
    }).catch((error: { stdout: string }) => ({ stdout: `${error.stdout}FAILED` }));
    const outputs = stdout.split(/^#### .*\/(.*)\n/m).slice(1);
    for (let i = 0; i < outputs.length; i += 2) {
      const [name = '', output = ''] = outputs.slice(i, i + 2);
      assert.doesNotMatch(output, /FAILED|^[345]\d\d /m, `${name}: ${output}`);
    }
    assert.equal(outputs.length, 2 * files.length);
  });
}
