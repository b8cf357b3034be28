/** Enough of a key to tell it from another: `key …4f2a`. */
export function shortKey(key: string): string {
  return `${key.startsWith('utt_') ? 'token' : 'key'} …${key.slice(-4)}`;
}
