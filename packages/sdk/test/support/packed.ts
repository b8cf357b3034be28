import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../../..', import.meta.url));

export interface Installed {
  /** A folder with the package installed in node_modules, as for a user. */
  readonly folder: string;
  readonly tarball: string;
  /** The files of the packed tarball. */
  readonly files: string[];
  remove(): Promise<void>;
}

/** Builds and packs the package, then installs the tarball offline into an empty folder. */
export async function installPacked(): Promise<Installed> {
  const base = await mkdtemp(join(tmpdir(), 'undertone-packed-'));
  const [dist, folder] = [join(base, 'dist'), join(base, 'user')];
  await run(process.execPath, [join(root, 'packages/sdk/scripts/build.ts'), dist]);
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', base], { cwd: dist });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "name": "user", "private": true }');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(base, packed.filename)], {
    cwd: folder,
  });
  return {
    folder,
    tarball: join(base, packed.filename),
    files: packed.files.map(({ path }) => path).sort(),
    remove: () => rm(base, { recursive: true, force: true }),
  };
}

/** Every Node from 20 on, Deno and Bun on the PATH, one per version, the current one first. */
export async function runtimes(): Promise<{ command: string; args: string[]; version: string }[]> {
  const found = new Map([[process.version, { command: process.execPath, args: [] as string[] }]]);
  const { PATH = '' } = process.env;
  for (const folder of PATH.split(delimiter)) {
    for (const [name, ...args] of [['node'], ['deno', 'run', '--allow-all'], ['bun']] as const) {
      const command = join(folder, name);
      const version = await run(command, ['--version']).then(
        ({ stdout }) => stdout.trim(),
        () => undefined,
      );
      if (!version || found.has(version)) continue;
      if (name !== 'node' || Number(/\d+/.exec(version)?.[0]) >= 20)
        found.set(version, { command, args: [...args] });
    }
  }
  return [...found].map(([version, runtime]) => ({ version, ...runtime }));
}

export interface Project {
  readonly compilerOptions: object;
  /** The content of each file by its name. */
  readonly files: Readonly<Record<string, string>>;
}

/** Writes each project to a folder of its own and runs the repository's TypeScript compiler on all; throws its errors. */
export async function typeCheck(folder: string, projects: Readonly<Record<string, Project>>): Promise<void> {
  for (const [name, { compilerOptions, files }] of Object.entries(projects)) {
    await mkdir(join(folder, name));
    const tsconfig = { compilerOptions, files: Object.keys(files) };
    for (const [file, text] of Object.entries({ ...files, 'tsconfig.json': JSON.stringify(tsconfig) })) {
      await writeFile(join(folder, name, file), text);
    }
  }
  // One process, which parses the libraries once for all projects.
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--build', ...Object.keys(projects)];
  await run(process.execPath, tsc, { cwd: folder }).catch((error: { stdout: string }) => {
    throw new Error(error.stdout);
  });
}

export const typeRoots = [join(root, 'node_modules/@types')];

export { run };
