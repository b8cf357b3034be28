import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { DEFAULT_URL, PATHS } from '@undertone/contract';
import { testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { ROOT } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';
import { LONG_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { samplesOf } from '../src/openapi/samples.ts';

type Language = keyof ReturnType<typeof samplesOf>;

/** Runs the samples of a language one after another in one process; a line with `####` and its name comes before each. */
const RUNNERS: Record<Language, { suffix: string; command: readonly string[] }> = {
  curl: {
    suffix: 'sh',
    command: [
      'bash',
      '-c',
      'for file in "$@"; do echo; echo "#### $file"; bash -e "$file" || echo FAILED; done',
      '-',
    ],
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

const client = await AsynchClient.of(service);
const finished = await client.upload(talkWav(6), 1);
await client.settled(finished);

/** Puts real values in the place of a sample's placeholders: those of an upload that can be completed or deleted. */
async function fill(sample: string, operationId: string): Promise<string> {
  const upload = await client.send(talkWav(6), 1);
  const { searchParams } = new URL(upload.presigned_urls[0]?.url ?? '');
  const values = {
    // A client polls until the result is there.
    REQUEST_ID: operationId === 'getPrediction' ? finished : upload.request_id,
    UPLOAD_ID: upload.upload_id,
    '\\"MD5\\"': JSON.stringify(upload.parts[0]?.ETag).slice(1, -1),
    EXPIRES: searchParams.get('expires') ?? '',
    SIGNATURE: searchParams.get('signature') ?? '',
    [DEFAULT_URL]: url,
  };
  return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), sample);
}

describe('every sample works as written', { concurrency: true }, () => {
  for (const language of ['curl', 'TypeScript', 'Python'] as const) {
    test(language, async () => {
      const { suffix, command } = RUNNERS[language];
      const files: string[] = [];
      for (const [path, methods] of Object.entries<object>(document.paths)) {
        for (const [method, operation] of Object.entries(methods)) {
          const file = join(folder, `${operation.operationId}.${suffix}`);
          await writeFile(
            file,
            await fill(samplesOf(method, path, operation)[language], operation.operationId),
          );
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
});
