import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ERROR_CODES, PATHS } from '@undertone/contract';
import { DiscreteResult, WebhookEvent } from '@undertone/contract/schemas';
import { testApp } from '@undertone/testing/app';
import Value from 'typebox/value';
import { parse } from 'yaml';
import { asyncApi } from '../src/streams/asyncapi.ts';
import { signatureHeaders } from '../src/webhooks/sign.ts';

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

  test('a public linter finds no error in either document, and no warning that matters', async () => {
    const linter = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'));
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const warningsOf = async (path: string) => {
      const args = [linter, 'lint', '--format=json', path];
      const { stdout } = await promisify(execFile)(process.execPath, args, { env });
      const { problems } = JSON.parse(stdout) as {
        problems: { ruleId: string; location: { pointer: string }[] }[];
      };
      return problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`);
    };
    assert.deepEqual(await warningsOf(asyncApiFile), []);
    // A stream answers 101, and probes refuse nobody.
    assert.deepEqual(await warningsOf(file), [
      'operation-2xx-response #/paths/~1v1~1stream/get/responses',
      'operation-4xx-response #/paths/~1healthz/get/responses',
      'operation-4xx-response #/paths/~1readyz/get/responses',
      'operation-4xx-response #/paths/~1metrics/get/responses',
    ]);
  });

  test('describes the webhooks that are sent, with their headers, as the schema says', () => {
    assert.deepEqual(Object.keys(document.webhooks), [
      'request.completed',
      'request.failed',
      'request.expired',
    ]);
    for (const [type, { post }] of Object.entries<typeof document>(document.webhooks)) {
      const { example } = post.requestBody.content['application/json'];
      assert.equal(example.type, type);
      assert.ok(Value.Check(WebhookEvent, example));
      assert.deepEqual(
        post.parameters.map(({ name }: { name: string }) => name),
        Object.keys(signatureHeaders('id', '{}', Buffer.alloc(32))),
      );
    }
  });

  test('accepts keys and tokens in both headers', () => {
    assert.deepEqual(Object.keys(document.components.securitySchemes), ['apiKey', 'bearer']);
    assert.deepEqual(document.security, [{ apiKey: [] }, { bearer: [] }]);
  });

  test('has a title from which generators do not make the name of a package of ours', () => {
    const name = document.info.title.toLowerCase().replaceAll(' ', '-');
    for (const ours of ['undertone', 'undertone-client', '@undertone/sdk']) {
      assert.notEqual(name, ours);
      assert.notEqual(`${name}-client`, ours);
    }
  });

  test('names every enum once, with values that are identifiers', () => {
    const { schemas } = document.components;
    assert.deepEqual(schemas.ModelId['x-enum-varnames'], [
      'FOUR_EMOTIONS',
      'FIVE_EMOTIONS',
      'SEVEN_EMOTIONS',
    ]);
    const unnamed: string[] = [];
    const visit = (node: unknown, path: string) => {
      if (typeof node !== 'object' || node === null) return;
      if ('enum' in node && Array.isArray(node.enum)) {
        const names: string[] = 'x-enum-varnames' in node ? (node['x-enum-varnames'] as string[]) : node.enum;
        const named = /^\/components\/schemas\/\w+$/.test(path) || node.enum.length === 1;
        if (!named || !names.every((name) => /^[a-z]/i.test(name))) unnamed.push(path);
      }
      for (const [key, value] of Object.entries(node)) visit(value, `${path}/${key}`);
    };
    visit(document, '');
    assert.deepEqual(unnamed, []);
  });

  test('lists the call that uploads a recording at once before those in parts', () => {
    const asynch = Object.keys(document.paths).filter((path) => path.startsWith(PATHS.asynch));
    assert.equal(asynch[0], '/v1/asynch/requests');
    assert.deepEqual(document.paths['/v1/asynch/upload/initiate'].get.tags, ['Existing clients']);
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
    const text = body.replaceAll('<wbr>', '');
    assert.match(String(headers['content-type']), /^text\/html/);
    for (const path of Object.keys(document.paths)) assert.ok(text.includes(`<code>${path}</code>`), path);
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
      assert.equal(body.split(`<h4>${language}</h4>`).length - 1, operations.length, language);
    }
  });

  test('breaks paths after slashes and underscores, and no word anywhere', async () => {
    const { body } = await service.app.inject({ url: PATHS.docs });
    assert.doesNotMatch(body, /overflow-wrap|word-break/);
    assert.ok(body.includes('<code>/<wbr>v1/<wbr>asynch/<wbr>requests</code>'));
  });

  test('lists the choices of a parameter, also of one with a named type', async () => {
    const { body } = await service.app.inject({ url: PATHS.docs });
    const [section = ''] =
      /<section class="operation" id="sendRecording"[\s\S]*?<\/section>/.exec(body) ?? [];
    const lists = [...section.matchAll(/<ul class="choices">(.*?)<\/ul>/g)].map(([, items = '']) =>
      [...items.matchAll(/<code>(.*?)<\/code>/g)].map(([, value]) => value),
    );
    assert.deepEqual(lists, [
      ['4emotions', '5emotions', '7emotions'],
      ['mix', 'separate'],
    ]);
  });

  test('begins with an index of all operations', async () => {
    const { body } = await service.app.inject({ url: PATHS.docs });
    const [index = ''] = /<nav class="index"[\s\S]*?<\/nav>/.exec(body) ?? [];
    const linked = [...index.matchAll(/href="#(\w+)"/g)].map(([, id]) => id);
    const ids = Object.values<object>(document.paths).flatMap((methods) =>
      Object.values<{ operationId: string }>({ ...methods }).map(({ operationId }) => operationId),
    );
    assert.deepEqual(linked.toSorted(), ids.toSorted());
    for (const id of ids) assert.ok(body.includes(`<section class="operation" id="${id}"`), id);
    assert.equal(linked.filter((id) => /upload|send/i.test(String(id)))[0], 'sendRecording');
  });
});
