// The API key or token of this tab, from the form or from the fragment of a link; browsers never send the fragment. It is
// stored until the tab closes, or in the browser if the user asks for it.
const NAME = 'undertone-key';

export function readKey(): string {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? '';
}

export function keepKey(key: string, remember: boolean): void {
  sessionStorage.setItem(NAME, key);
  if (remember) localStorage.setItem(NAME, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}

export interface Link {
  /** A key, from the link that the server prints. */
  readonly key: string | null;
  /** A request, from a link to a result. */
  readonly request: string | null;
}

/** A link opened in the same tab changes only the fragment: the page starts again to read it. */
export function followLinks(): void {
  addEventListener('hashchange', () => {
    if (/[#&](key|request)=/.test(location.hash)) location.reload();
  });
}

/** Reads the fragment of the address and removes it, so that the key does not stay on the screen. */
export function takeLink(): Link {
  const given = new URLSearchParams(location.hash.slice(1));
  const link = { key: given.get('key'), request: given.get('request') };
  if (link.key !== null || link.request !== null) {
    history.replaceState(null, '', location.pathname + location.search);
  }
  return link;
}
