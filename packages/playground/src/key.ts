// The API key of this tab, from the form or from the fragment of the link that the server prints; browsers never send the
// fragment. It is stored until the tab closes, or in the browser if the user asks for it.
const NAME = 'undertone-key';

export function readKey(): string {
  const given = new URLSearchParams(location.hash.slice(1)).get('key');
  if (given === null) return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? '';
  history.replaceState(null, '', location.pathname + location.search);
  sessionStorage.setItem(NAME, given);
  return given;
}

export function keepKey(key: string, remember: boolean): void {
  sessionStorage.setItem(NAME, key);
  if (remember) localStorage.setItem(NAME, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}
