// The key of this tab. It comes from the fragment of the link that the server prints, which a browser never sends, or from
// the form. It is kept for the tab, and longer only when asked.
const NAME = 'undertone-key';

export function readKey(): string {
  const given = new URLSearchParams(location.hash.slice(1)).get('key');
  if (given === null) return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? '';
  history.replaceState(null, '', location.pathname + location.search);
  sessionStorage.setItem(NAME, given);
  return given;
}

export function keepKey(key: string, forLonger: boolean): void {
  sessionStorage.setItem(NAME, key);
  if (forLonger) localStorage.setItem(NAME, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}
