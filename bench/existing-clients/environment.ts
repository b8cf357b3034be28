import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Keeps the clients' environments, so that a second run does not install them again. */
export const FOLDER = join(tmpdir(), 'undertone-existing-clients');
const PYTHON = process.env['PYTHON'] ?? '/usr/bin/python3';

/** The Python of a virtual environment with these packages from PyPI. */
export async function environment(name: string, packages: readonly string[]): Promise<string> {
  const run = promisify(execFile);
  const folder = join(FOLDER, name);
  const python = join(folder, 'bin/python');
  if (!existsSync(join(folder, 'installed'))) {
    await run(PYTHON, ['-m', 'venv', '--clear', folder]);
    await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]);
    await writeFile(join(folder, 'installed'), packages.join('\n'));
  }
  return python;
}
