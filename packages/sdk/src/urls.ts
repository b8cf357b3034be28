import { PATHS } from '@undertone/contract';

export type Query = Readonly<Record<string, string | number | undefined>>;

/** An address with more query parameters; those it has already stay. */
export function withQuery(address: string, query: Query): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  url.hash = '';
  return url.href;
}

/** Joins a path to a base address, however many slashes the base ends in. */
export function joinUrl(base: string, path: string, query: Query = {}): string {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`;
  return withQuery(url.href, query);
}

/** The list of models is next to the asynch interface. */
export function modelsUrl(asynchUrl: string): string {
  const url = new URL(asynchUrl);
  const parent = url.pathname.replace(/\/+$/, '').replace(/\/[^/]*$/, '');
  url.pathname = `${parent}/${PATHS.models.split('/').at(-1)}`;
  return withQuery(url.href, {});
}

/** An address as it may stand in a log or an error: the query can contain signatures and tokens. */
export function withoutQuery(address: string): string {
  const url = new URL(address);
  return `${url.origin}${url.pathname}`;
}

/** Whether an address is one of this machine. */
export function isLoopback(address: string): boolean {
  return /^((.+\.)?localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(new URL(address).hostname);
}
