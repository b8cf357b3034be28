import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ERROR_CODES, PATHS } from '@undertone/contract';
import { DiscreteResult } from '@undertone/contract/schemas';
import { testApp } from '@undertone/testing/app';
import Value from 'typebox/value';
import { parse } from 'yaml';
import { asyncApi } from '../src/streams/asyncapi.ts';

const service = await testApp();
const file = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url));
const asyncApiFile = fileURLToPath(new URL('../../../docs/asyncapi.yaml', import.meta.url));
const document = (await service.app.inject({ url: PATHS.openapi })).json();

describe('the OpenAPI document', () => {
  test('docs/openapi.json is up to date (npm run openapi -w packages/server writes it)', async () => {
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), document);
  });

  test('docs/asyncapi.yaml is up to date (the same command writes it)', async () => {
    assert.deepEqual(parse(await readFile(asyncApiFile, 'utf8')), JSON.parse(JSON.stringify(asyncApi())));
  });

  test('a public linter finds no error in either document', async () => {
    const linter = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'));
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    await promisify(execFile)(process.execPath, [linter, 'lint', file, asyncApiFile], { env });
  });

  test('describes both discrete paths with both input formats', () => {
    assert.equal(document.openapi, '3.1.0');
    for (const path of [PATHS.discrete, PATHS.discreteShort]) {
      const { post } = document.paths[path];
      assert.deepEqual(Object.keys(post.requestBody.content), ['multipart/form-data', 'application/json']);
      assert.equal(post.parameters[0].name, 'model');
      for (const status of [200, 400, 401, 408, 413, 415, 422, 429, 500, 503])
        assert.ok(post.responses[status], String(status));
    }
  });

  test('has examples that match their schemas', () => {
    const { example } = document.paths[PATHS.discrete].post.responses['200'].content['application/json'];
    assert.ok(Value.Check(DiscreteResult, example));
  });
});

describe('the docs page', () => {
  test('shows every operation, and has an anchor for every error code', async () => {
    const { body, headers } = await service.app.inject({ url: PATHS.docs });
    assert.match(String(headers['content-type']), /^text\/html/);
    for (const path of Object.keys(document.paths)) assert.ok(body.includes(`<code>${path}</code>`), path);
    for (const code of ERROR_CODES) assert.ok(body.includes(`id="${code}"`), code);
    for (const name of Object.keys(document.components.schemas))
      assert.ok(body.includes(`id="shape-${name}"`));
  });

  test('loads nothing from other hosts, and its policy allows only its own style and script', async () => {
    const { body, headers } = await service.app.inject({ url: PATHS.docs });
    const [, style = '', rest = ''] = /<style>([\s\S]*)<\/style>([\s\S]*)$/.exec(body) ?? [];
    assert.doesNotMatch(rest.replaceAll(/<pre[\s\S]*?<\/pre>/g, ''), /https?:\/\/|<img|\sstyle=|\son\w+=/);
    assert.deepEqual(body.match(/<(script|link)[^>]*>/g), [
      '<link rel="icon" href="/page/icon.svg" type="image/svg+xml">',
      '<script type="module" src="/page/docs.js">',
    ]);
    const hash = createHash('sha256').update(style).digest('base64');
    const policy = String(headers['content-security-policy']);
    assert.ok(policy.includes(`style-src 'sha256-${hash}'; script-src 'self'; connect-src 'self'`));
  });

  test('has samples in three languages for every operation', async () => {
    const { body } = await service.app.inject({ url: PATHS.docs });
    const operations = Object.values(document.paths as Record<string, object>).flatMap(Object.keys);
    for (const language of ['curl', 'TypeScript', 'Python']) {
      assert.equal(body.split(`<h5>${language}</h5>`).length - 1, operations.length, language);
    }
  });
});
