// Starts the services of compose.yaml as processes, with its environment and commands, and uploads a recording to them.
// acceptance.sh runs it in a namespace where `postgres` and `s3` are this machine; its child processes end with the namespace.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { talkWav } from '@undertone/testing/talk';
import pg from 'pg';
import { parse, parseAllDocuments } from 'yaml';

interface Service {
  environment: Record<string, string>;
  command?: string[];
  deploy?: { replicas: number };
}

const ROOT = new URL('../', import.meta.url).pathname;
const UNDERTONE = [process.execPath, join(ROOT, 'packages/cli/bin/undertone.js')] as const;
const TALK_SECONDS = 60;

/** Secrets have no defaults; these are for this run only. */
const SECRETS: Record<string, string> = {
  POSTGRES_PASSWORD: randomBytes(24).toString('hex'),
  S3_SECRET: randomBytes(24).toString('hex'),
};

/** Replaces `${NAME:-default}` by the default and `${NAME:?message}` by a secret. */
const text = readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8')
  .replace(/\$\{\w+:-([^}]*)\}/g, '$1')
  .replace(/\$\{(\w+):\?[^}]*\}/g, (_, name: string) => {
    assert.ok(SECRETS[name], `${name} has no value`);
    return SECRETS[name];
  });
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
const { api, worker, postgres, s3 } = services as Record<'api' | 'worker' | 'postgres' | 's3', Service>;
const folder = await mkdtemp(join(tmpdir(), 'undertone-compose-'));
const { PATH = '' } = process.env;

function run(program: string, args: readonly string[], env: Record<string, string> = {}, more = {}): void {
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
    ...more,
  });
  child.on('exit', (code) => {
    console.log(`${program} ${args.join(' ')} exited with ${code}`);
    process.exit(1);
  });
}

async function undertone(args: readonly string[], env: Record<string, string>): Promise<string> {
  const [program, script] = UNDERTONE;
  const { stdout } = await promisify(execFile)(program, [script, ...args], { env: { PATH, ...env } });
  return stdout;
}

async function until(what: string, check: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; !(await check().catch(() => false)); tries++) {
    if (tries === 300) throw new Error(`${what} did not start`);
    await sleep(100);
  }
  console.log(`${what} is up`);
}

async function startPostgres({
  POSTGRES_USER = '',
  POSTGRES_PASSWORD = '',
  POSTGRES_DB = '',
}): Promise<void> {
  const [, uid, gid] = (/^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? []).map(
    Number,
  );
  const user = { uid: uid ?? 0, gid: gid ?? 0 };
  const versions = readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a));
  const programs = `/usr/lib/postgresql/${versions[0]}/bin`;
  const home = join(folder, 'postgres');
  await mkdir(home);
  chownSync(folder, user.uid, user.gid);
  chownSync(home, user.uid, user.gid);
  await writeFile(join(folder, 'password'), POSTGRES_PASSWORD);
  const options = [
    '-D',
    join(home, 'data'),
    '--auth=scram-sha-256',
    `--username=${POSTGRES_USER}`,
    '--no-sync',
  ];
  execFileSync(`${programs}/initdb`, [...options, `--pwfile=${join(folder, 'password')}`], {
    ...user,
    cwd: home,
  });
  run(
    `${programs}/postgres`,
    ['-D', join(home, 'data'), '-k', home],
    {},
    { ...user, cwd: home, stdio: 'ignore' },
  );
  const url = `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@postgres:5432`;
  await until('PostgreSQL', () => query(`${url}/postgres`, `CREATE DATABASE ${POSTGRES_DB}`));
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows ?? [];
  } finally {
    await client.end();
  }
}

try {
  await startPostgres(postgres.environment);
  const command = (s3.command ?? []).map((word) => word.replace('/data', join(folder, 's3')));
  await mkdir(join(folder, 's3'));
  run(join(ROOT, '.venv/bin/weed'), command, { ...s3.environment, TMPDIR: folder }, { stdio: 'ignore' });
  await until('S3', async () => (await fetch('http://s3:8333/status')).ok);

  // In containers all listen on the same port; here each has its own address instead.
  const hosts = [
    '127.0.0.1',
    ...Array.from({ length: worker.deploy?.replicas ?? 1 }, (_, i) => `127.0.0.${11 + i}`),
  ];
  for (const [i, SERVICE_HOST] of hosts.entries()) {
    const { environment } = i === 0 ? api : worker;
    run(UNDERTONE[0], [UNDERTONE[1], 'serve'], { ...environment, SERVICE_HOST }, { stdio: 'ignore' });
    await until(
      i === 0 ? 'api' : `worker ${i}`,
      async () => (await fetch(`http://${SERVICE_HOST}:8080/readyz`)).ok,
    );
  }
  console.log(await undertone(['doctor', '--port', '0'], api.environment));

  const key = (await undertone(['keys', 'create', 'laptop'], api.environment)).trim();
  const talk = join(folder, 'talk.wav');
  await writeFile(talk, talkWav(TALK_SECONDS));
  const timeline = await undertone(['upload', talk, '--wait', '--json'], {
    SERVICE_API_KEY: key,
    SERVICE_URL: 'http://127.0.0.1:8080',
  });
  assert.equal(JSON.parse(timeline).emotions.length, TALK_SECONDS / 5, timeline);
  console.log(
    `A recording of ${TALK_SECONDS} s was uploaded directly to S3 and gave ${TALK_SECONDS / 5} emotions.`,
  );

  const manifests = parseAllDocuments(readFileSync(join(ROOT, 'deploy/kubernetes/autoscaler.yaml'), 'utf8'));
  const scaler = manifests.map((manifest) => manifest.toJS()).find(({ kind }) => kind === 'ScaledObject');
  const url = new URL(api.environment['SERVICE_DATABASE_URL'] ?? '');
  // The role of docs/SCALING.md.
  const documented = readFileSync(join(ROOT, 'docs/SCALING.md'), 'utf8').match(
    /^ {4}(CREATE ROLE|GRANT) .*;$/gm,
  );
  await query(url.href, documented?.join('\n').replace("'...'", "'secret'") ?? '');
  Object.assign(url, { username: 'undertone_autoscaler', password: 'secret' });
  const [row] = await query(url.href, scaler.spec.triggers[0].metadata.query);
  assert.equal(Number(Object.values(row ?? {})[0]), 0, 'the queue is empty');
  await assert.rejects(query(url.href, 'SELECT * FROM undertone.keys'), /permission denied/);
  console.log('The query of the autoscaler works with a role that can do nothing else.');
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(0);
