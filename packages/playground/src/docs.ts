// Adds a form to each operation of /docs that sends it with the API key of this tab.
import { API_KEY_HEADER, DEFAULT_URL } from '@undertone/contract';
import { keepKey, readKey } from './key.ts';

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly place: string;
    readonly required?: boolean;
    readonly choices?: readonly unknown[];
  }[];
  readonly types: readonly string[];
}

/** Puts the address of this server into the samples. */
for (const sample of document.querySelectorAll('pre')) {
  sample.textContent = sample.textContent?.replaceAll(DEFAULT_URL, location.origin) ?? '';
}

/** Unfolds the shape that a link leads to. */
function unfoldTarget(): void {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
unfoldTarget();
addEventListener('hashchange', unfoldTarget);

for (const section of document.querySelectorAll<HTMLElement>('[data-operation]')) {
  const { operation } = section.dataset;
  if (operation) section.append(trialOf(JSON.parse(operation)));
}

function trialOf(operation: Operation): HTMLElement {
  const details = element('details', { className: 'trial' });
  const form = element('form', {});
  const answer = element('pre', { tabIndex: 0, hidden: true });
  answer.setAttribute('aria-live', 'polite');
  form.append(
    ...operation.parameters.map(({ name, place, required = false, choices }) =>
      choices === undefined
        ? field(name, { required, title: place })
        : labelled(name, selectOf(name, required ? choices : ['', ...choices])),
    ),
    ...(operation.types.length === 0 ? [] : [bodyField(operation)]),
    field('API key', { type: 'password', value: readKey(), autocomplete: 'off' }),
    element('button', { textContent: 'Send' }),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    answer.hidden = false;
    answer.textContent = '…';
    send(operation, new FormData(form)).then(
      (text) => {
        answer.textContent = text;
      },
      (error: Error) => {
        answer.textContent = error.message;
      },
    );
  });
  details.append(element('summary', { textContent: 'Try it' }), form, answer);
  return details;
}

async function send({ method, path, parameters, types }: Operation, given: FormData): Promise<string> {
  const value = (name: string) => String(given.get(name) ?? '');
  const url = new URL(
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(value(name))),
    location.origin,
  );
  for (const { name, place } of parameters) {
    if (place === 'query' && value(name) !== '') url.searchParams.set(name, value(name));
  }
  const headers = new Headers();
  const key = value('API key').trim();
  if (key !== '') {
    headers.set(API_KEY_HEADER, key);
    keepKey(key, false);
  }
  const body = given.get('body');
  const form = new FormData();
  if (body instanceof File && types.includes('multipart/form-data')) form.append('file', body, body.name);
  else if (typeof body === 'string') headers.set('content-type', 'application/json');
  else if (body !== null) headers.set('content-type', 'application/octet-stream');
  const response = await fetch(url, { method, headers, body: form.has('file') ? form : body });
  const text = await response.text();
  return `${response.status} ${response.statusText}\n${pretty(text)}`;
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function bodyField({ types }: Operation): HTMLElement {
  return types.length === 1 && types[0] === 'application/json'
    ? field('body', { required: true, placeholder: 'JSON' })
    : field('body', { required: true, type: 'file' });
}

function field(name: string, properties: Partial<HTMLInputElement>): HTMLElement {
  return labelled(name, element('input', { name, ...properties }));
}

function selectOf(name: string, choices: readonly unknown[]): HTMLElement {
  const select = element('select', { name });
  select.append(...choices.map((choice) => element('option', { textContent: String(choice) })));
  return select;
}

function labelled(name: string, control: HTMLElement): HTMLElement {
  const label = element('label', { textContent: `${name} ` });
  label.append(control);
  return label;
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties);
}
