import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ERRORS } from '@undertone/contract';
import { samplesOf, UPLOAD_WALK } from './samples.ts';

/** What the page shows of an OpenAPI document. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[] | undefined;
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
}
interface Media {
  schema?: Schema;
  example?: unknown;
}
interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  security?: unknown[];
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema?: Schema }[];
  requestBody?: { content: Record<string, Media> };
  responses?: Record<
    string,
    { description: string; headers?: Record<string, Schema>; content?: Record<string, Media> }
  >;
}

const CSS = readFileSync(new URL('./docs-page.css', import.meta.url), 'utf8');

/**
 * One page that loads nothing from other hosts and is readable without its script (packages/playground/src/docs.ts), which
 * lets readers try operations. Problems link to its error table. docs/ARCHITECTURE.md says why it is no library.
 */
export function renderDocs(document: object): { html: string; contentSecurityPolicy: string } {
  const { info, paths, components, tags } = document as {
    info: { title: string; version: string; description: string };
    tags: { name: string; description: string }[];
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, Schema> };
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(name));
    const walk = name === 'Asynch' ? renderWalk() : '';
    const [first = '', ...others] = own.map((operation) => renderOperation(operation, components.schemas));
    return `<h2 id="${encode(slug(name))}">${encode(name)}</h2><p>${prose(description)}</p>${first}${walk}${others.join('')}`;
  });
  const index = tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(name));
    const items = own.map(
      ({ path, method, operation: { operationId = '', summary = '' } }) =>
        `<li><a href="#${encode(operationId)}">${encode(summary)}</a> <code>${method.toUpperCase()} ${breakable(path)}</code></li>`,
    );
    return `<h3>${encode(name)}</h3><ul>${items.join('')}</ul>`;
  });
  const shapes = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details class="shape" id="shape-${encode(name)}"><summary>${encode(name)}</summary><p>${prose(schema.description ?? '')}</p>${renderFields(schema)}</details>`,
  );
  const errors = Object.entries(ERRORS).map(
    ([code, { status, title }]) =>
      `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${encode(title)}</td></tr>`,
  );
  const links = [...tags.map(({ name }) => [slug(name), name]), ['shapes', 'Shapes'], ['errors', 'Errors']]
    .map(([id, name]) => `<a href="#${id}">${encode(name ?? '')}</a>`)
    .join('');
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${encode(info.title)}</title><link rel="icon" href="/page/icon.svg" type="image/svg+xml"><style>${CSS}</style>
<script type="module" src="/page/docs.js"></script></head>
<body><header><h1>${encode(info.title)} <small>${encode(info.version)}</small></h1>
<nav aria-label="Sections"><a href="/">Page</a>${links}<a href="/openapi.json">openapi.json</a></nav></header>
<main>${paragraphs(info.description)}<nav class="index" aria-label="Operations"><h2>Operations</h2>${index.join('')}</nav>${sections.join('')}
<h2 id="shapes">Shapes</h2>${shapes.join('')}
<h2 id="errors">Errors</h2><table><thead><tr><th>code</th><th>status</th><th>meaning</th></tr></thead><tbody>${errors.join('')}</tbody></table>
</main></body></html>`;
  const styleHash = createHash('sha256').update(CSS).digest('base64');
  return {
    html,
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${styleHash}'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function renderOperation(
  { path, method, operation }: { path: string; method: string; operation: Operation },
  schemas: Record<string, Schema>,
): string {
  const {
    summary = '',
    description = '',
    parameters = [],
    requestBody,
    responses = {},
    security,
  } = operation;
  const key = security?.length === 0 ? '<span class="open">no key needed</span>' : '';
  const query = parameters.map(
    ({ name, in: place, required, description: text, schema }) =>
      `<tr><td><code>${encode(name)}</code></td><td>${encode(place)}${required ? '' : ', optional'}</td><td>${prose(text ?? schema?.description ?? '')} ${constraints({ ...schema, enum: choicesOf(schema, schemas) })}</td></tr>`,
  );
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, media]) => `<h4>Body <code>${encode(type)}</code></h4>${renderFields(media.schema ?? {})}`,
  );
  const rows = Object.entries(responses).map(
    ([status, { description: text, headers = {}, content = {} }]) => {
      const [type, media] = Object.entries(content)[0] ?? [];
      const names = Object.keys(headers).map((name) => `<code>${encode(name)}</code>`);
      const example = media?.example ? `<pre>${encode(JSON.stringify(media.example, null, 2))}</pre>` : '';
      const extra = names.length > 0 ? `<br>Headers: ${names.join(', ')}` : '';
      return `<tr><td class="s${status.charAt(0)}">${encode(status)}</td><td>${prose(text)}${extra}${example}</td><td>${type ? `<code>${encode(type)}</code><br>${typeName(media?.schema ?? {})}` : ''}</td></tr>`;
    },
  );
  const errors = rows.filter((row) => /class="s[45]"/.test(row));
  const answers = rows.filter((row) => !errors.includes(row));
  const samples = Object.entries(samplesOf(method, path, operation)).map(
    ([language, text]) => `<h4>${language}</h4><pre tabindex="0">${encode(text)}</pre>`,
  );
  const trial = encode(
    JSON.stringify({
      method,
      path,
      parameters: parameters.map(({ name, in: place, required, schema }) => ({
        name,
        place,
        required,
        choices: choicesOf(schema, schemas),
      })),
      types: Object.keys(requestBody?.content ?? {}),
    }),
  );
  return `<section class="operation" id="${encode(operation.operationId ?? '')}" data-operation="${operation.operationId === 'stream' ? '' : trial}"><h3><span class="method ${encode(method)}">${encode(method.toUpperCase())}</span> <code>${breakable(path)}</code> ${key}</h3>
<p class="summary">${encode(summary)}</p>${paragraphs(description)}
${query.length > 0 ? `<h4>Parameters</h4><table><tbody>${query.join('')}</tbody></table>` : ''}${bodies.join('')}
<details><summary>Call it from curl, TypeScript, Python</summary>${samples.join('')}</details>
<h4>Answers</h4><table><tbody>${answers.join('')}</tbody></table>
${errors.length > 0 ? `<details><summary>Errors</summary><table><tbody>${errors.join('')}</tbody></table></details>` : ''}</section>`;
}

function renderWalk(): string {
  const steps = UPLOAD_WALK.map(
    ([what, command]) => `<li>${encode(what)}<pre class="walk" tabindex="0">${encode(command)}</pre></li>`,
  );
  return `<section class="operation"><h3>A long recording, step by step</h3>
<p>The clients and <code>undertone upload talk.wav --wait</code> do all of this in one call, in parallel parts and with retries.</p><ol>${steps.join('')}</ol></section>`;
}

function renderFields(schema: Schema): string {
  if (schema.$ref) return `<p>${typeName(schema)}</p>`;
  if (schema.enum) return constraints(schema);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices)
    return `<ul>${choices.map((choice) => `<li>${typeName(choice)} ${prose(choice.description ?? '')}</li>`).join('')}</ul>`;
  const rows = Object.entries(schema.properties ?? {}).map(
    ([name, field]) =>
      `<tr><td><code>${encode(name)}</code></td><td>${typeName(field)}${schema.required?.includes(name) ? '' : ', optional'}</td><td>${prose(field.description ?? '')} ${constraints(field)}</td></tr>`,
  );
  return rows.length > 0 ? `<table><tbody>${rows.join('')}</tbody></table>` : '';
}

function typeName({ $ref, type, items, enum: values, anyOf, allOf, properties }: Schema): string {
  if ($ref) {
    const name = encode($ref.split('/').at(-1) ?? '');
    return `<a href="#shape-${name}">${name}</a>`;
  }
  if (items) return `array of ${typeName(items)}`;
  if (allOf) return allOf.map(typeName).join(' and ');
  if (anyOf) return anyOf.map(typeName).join(' or ');
  if (properties)
    return `object: ${Object.keys(properties)
      .map((name) => `<code>${encode(name)}</code>`)
      .join(', ')}`;
  return encode(String(type ?? (values ? 'string' : 'any')));
}

/** The values of an enum, also of a named one. */
function choicesOf(schema: Schema = {}, schemas: Record<string, Schema>): unknown[] | undefined {
  const $ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
  const known = $ref === undefined ? schema : schemas[$ref.split('/').at(-1) ?? ''];
  return known?.enum ?? (known?.type === 'boolean' ? [true, false] : undefined);
}

function constraints({ enum: values, const: only, minimum, maximum, default: preset }: Schema): string {
  const code = (value: unknown) => `<code>${encode(String(value))}</code>`;
  return [
    values && `<ul class="choices">${values.map((value) => `<li>${code(value)}</li>`).join('')}</ul>`,
    only !== undefined && `Always ${code(only)}.`,
    minimum !== undefined && maximum !== undefined && `From ${code(minimum)} to ${code(maximum)}.`,
    preset !== undefined && `Default ${code(preset)}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .filter(Boolean)
    .map((paragraph) => `<p>${prose(paragraph)}</p>`)
    .join('');
}

/** The only mark-up in our descriptions is \`code\`. */
function prose(text: string): string {
  return encode(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

/** Paths break after a slash or an underscore, and never inside a word. */
function breakable(path: string): string {
  return encode(path).replaceAll(/(?<=[/_])/g, '<wbr>');
}

function slug(name: string): string {
  return name.toLowerCase().replace(/\W+/g, '-');
}

function encode(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
