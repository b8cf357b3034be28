import { PATHS } from '@undertone/contract';

export type Query = Readonly<Record<string, string | number | undefined>>;

/** Adds query parameters to a URL. */
export function withQuery(address: string, query: Query): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  url.hash = '';
  return url.href;
}

/** Joins a path to a base URL, which may end in slashes. */
export function joinUrl(base: string, path: string, query: Query = {}): string {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`;
  return withQuery(url.href, query);
}

/** The list of models and the tokens are siblings of the asynch interface. */
export function siblingUrl(asynchUrl: string, path: string): string {
  const url = new URL(asynchUrl);
  const parent = url.pathname.replace(/\/+$/, '').replace(/\/[^/]*$/, '');
  url.pathname = `${parent}/${path.split('/').at(-1)}`;
  return withQuery(url.href, {});
}

export function modelsUrl(asynchUrl: string): string {
  return siblingUrl(asynchUrl, PATHS.models);
}

/** A URL for logs and errors: its query can contain signatures and tokens. */
export function withoutQuery(address: string): string {
  const url = new URL(address);
  return `${url.origin}${url.pathname}`;
}

/** Whether a URL points to this machine. */
export function isLoopback(address: string): boolean {
  return /^((.+\.)?localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/.test(new URL(address).hostname);
}
