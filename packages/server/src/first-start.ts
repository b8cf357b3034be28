import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';

const FIRST_KEY_FILE = 'first-key';
/** In a clone, and in an installed package. */
const EXAMPLES = ['../../../examples/voices/angry-1013.wav', '../../playground/dist/examples/angry-1013.wav'];

/** What to open and what to run. Pass a key only if this start created it. */
export function banner(address: string, key: string | undefined): string {
  // A browser cannot open the wildcard address.
  const url = address.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//127.0.0.1');
  const open =
    key === undefined
      ? `${url}/  (it asks for your API key; \`npx undertone keys create me\` makes one)`
      : `${url}/#key=${key}  (this key is shown only once)`;
  const header = `-H "x-api-key: ${key ?? '$SERVICE_API_KEY'}"`;
  const files = EXAMPLES.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const example = relative(process.cwd(), files.find((file) => existsSync(file)) ?? 'voice.wav');
  return `
  Open  ${open}
  Or    curl ${header} -F file=@${example} ${url}${PATHS.discrete}
  Docs  ${url}${PATHS.docs}

`;
}

/** For servers without a terminal. Only the user that runs the server can read the file. */
export async function writeFirstKey(dataDir: string, key: string, url: string): Promise<string> {
  // With PostgreSQL the folder may not exist yet.
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, FIRST_KEY_FILE);
  await writeFile(file, `${key}\n${url}/#key=${key}\n`, { mode: 0o600 });
  await chmod(file, 0o600); // the file may be an old one
  return file;
}
