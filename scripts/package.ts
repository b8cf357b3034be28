// `make package`: builds everything that is published into dist-packages/, or into the folder given: the npm packages `undertone`
// and `@undertone/sdk`, the Python wheel and its sdist.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');
const out = resolve(process.argv[2] ?? join(root, 'dist-packages'));
const work = mkdtempSync(join(tmpdir(), 'undertone-package-'));

function run(command: string, args: string[], cwd = root): void {
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const name of ['cli', 'sdk']) {
    const folder = join(work, name);
    run(process.execPath, [join(root, `packages/${name}/scripts/build.ts`), folder]);
    run('npm', ['pack', '--silent', '--pack-destination', out], folder);
  }
  // The wheel is built from the sdist, so that a file missing there is noticed.
  const python = join(root, 'clients/python/.venv/bin/python');
  run(python, ['-m', 'build', '--no-isolation', '--outdir', out, join(root, 'clients/python')]);
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const name of readdirSync(out).sort()) {
  if (name.startsWith('.')) continue;
  console.log(`${join(out, name)}  ${(statSync(join(out, name)).size / 1e6).toFixed(2)} MB`);
}
