import { readdirSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';

/** Where the first key is kept when there is no terminal to show it on. */
export const FIRST_KEY_FILE = 'first-key';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Wherever it is started from: in a clone its own place, elsewhere that of the user's data. */
export function defaultDataDir(env: NodeJS.ProcessEnv = process.env, root = ROOT): string {
  const isInstalled = /[\\/]node_modules[\\/]/.test(root);
  if (!isInstalled) return join(root, '.undertone');
  const { XDG_DATA_HOME } = env;
  return join(XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'undertone');
}

/** What a person can use, in three lines. A key is in it only when this start has made it. */
export function banner(address: string, key: string | undefined): string {
  // Nobody can open "all addresses of this machine".
  const url = address.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//127.0.0.1');
  const open =
    key === undefined
      ? `${url}/  (it asks for your API key; \`npx undertone keys create me\` makes one)`
      : `${url}/#key=${key}  (this key is shown only now)`;
  const header = `-H "x-api-key: ${key ?? '$SERVICE_API_KEY'}"`;
  return `
  Open  ${open}
  Or    curl ${header} -F file=@${exampleVoice()} ${url}${PATHS.discrete}
  Docs  ${url}${PATHS.docs}

`;
}

/** For the user of the server alone to read. */
export async function keepFirstKey(dataDir: string, key: string, url: string): Promise<string> {
  const file = join(dataDir, FIRST_KEY_FILE);
  await writeFile(file, `${key}\n${url}/#key=${key}\n`, { mode: 0o600 });
  await chmod(file, 0o600); // it may have been there before
  return file;
}

/** One that is really there, so that the line can be pasted. */
function exampleVoice(): string {
  const folder = join(ROOT, 'examples', 'voices');
  try {
    const [name = 'voice.wav'] = readdirSync(folder).sort();
    return relative(process.cwd(), join(folder, name));
  } catch {
    return 'voice.wav';
  }
}
