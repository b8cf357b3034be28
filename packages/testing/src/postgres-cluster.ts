import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { dieWithParent } from './die-with-parent.ts';

/** Set by global-setup.ts for all test files: the folder of a running cluster. */
const SHARED = 'UNDERTONE_TEST_POSTGRES';

/** A real PostgreSQL in a temporary folder, with a socket there. `remove` deletes everything. */
export class PostgresCluster {
  readonly #folder: string;
  readonly #user: User;
  #server: ChildProcess | undefined;

  private constructor(folder: string, user: User) {
    this.#folder = folder;
    this.#user = user;
  }

  /** The cluster of the whole test run, whose `remove` does nothing; a new one if only some test files are run. */
  static async shared(): Promise<PostgresCluster> {
    const folder = process.env[SHARED];
    return folder === undefined ? PostgresCluster.start() : new PostgresCluster(folder, {});
  }

  /** Makes this the cluster that `shared` returns in child processes. */
  share(): void {
    process.env[SHARED] = this.#folder;
  }

  static async start(): Promise<PostgresCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-postgres-'));
    const user = ordinaryUser();
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid ?? user.uid);
    const cluster = new PostgresCluster(folder, user);
    process.once('exit', cluster.#removeAtExit);
    const flags = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];
    const [command, args] = asUser(user, [program('initdb'), ['-D', join(folder, 'data'), ...flags]]);
    execFileSync(command, args, { uid: user.uid, gid: user.gid, cwd: folder, stdio: 'pipe' });
    await cluster.startServer();
    return cluster;
  }

  async startServer(): Promise<void> {
    // No TCP and no fsync: power failures are not tested here.
    const flags = ['-c', 'listen_addresses=', '-c', 'fsync=off', '-c', 'max_connections=200'];
    const where = ['-D', join(this.#folder, 'data'), '-k', this.#folder];
    const [command, args] = asUser(this.#user, dieWithParent(program('postgres'), [...where, ...flags]));
    const { uid, gid } = this.#user;
    const server = spawn(command, args, {
      uid,
      gid,
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#server = server;
    let log = '';
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4_000);
    });
    while (!(await this.#answers())) {
      if (server.exitCode !== null) throw new Error(`PostgreSQL did not start: ${log}`);
      await sleep(20);
    }
  }

  /** Fast shutdown, as in a restart: all clients are disconnected at once. */
  async stopServer(): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null) return;
    const exit = once(server, 'exit');
    server.kill('SIGINT');
    await exit;
  }

  /** As if its machine hung: connections stay open, and nothing is answered. */
  freezeServer(): void {
    // The parent first: it starts no further process then.
    for (const pid of this.#processes()) process.kill(pid, 'SIGSTOP');
  }

  thawServer(): void {
    for (const pid of this.#processes()) process.kill(pid, 'SIGCONT');
  }

  #processes(): number[] {
    const pid = this.#server?.pid;
    if (pid === undefined) throw new Error('this server is not ours');
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return [pid, ...(children === '' ? [] : children.split(' ').map(Number))];
  }

  /** Creates an empty database and returns its URL. */
  async newDatabase(): Promise<string> {
    const name = `test_${randomBytes(6).toString('hex')}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.#url(name);
  }

  async query(sql: string, url = this.#url('postgres')): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** In case a test fails before it calls `remove`. */
  readonly #removeAtExit = () => {
    this.#server?.kill('SIGQUIT');
    rmSync(this.#folder, { recursive: true, force: true });
  };

  async remove(): Promise<void> {
    if (this.#server === undefined) return; // shared
    process.off('exit', this.#removeAtExit);
    await this.stopServer();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #url(database: string): string {
    return `postgres://postgres@/${database}?host=${encodeURIComponent(this.#folder)}`;
  }

  async #answers(): Promise<boolean> {
    return this.query('SELECT 1').then(
      () => true,
      () => false,
    );
  }
}

interface User {
  readonly uid?: number;
  readonly gid?: number;
  /** A command that runs another one as this user. */
  readonly prefix?: readonly string[];
}

/** PostgreSQL refuses to run as root. */
function ordinaryUser(): User {
  if (process.getuid?.() !== 0) return {};
  // In a user namespace where root is the only user, one more namespace gives the same user another number.
  const map = '/proc/self/uid_map';
  if (existsSync(map) && !readFileSync(map, 'utf8').includes('4294967295')) {
    return { prefix: ['unshare', '--user', '--map-user=1000', '--map-group=1000'] };
  }
  const users = readFileSync('/etc/passwd', 'utf8');
  const [, uid, gid] =
    /^postgres:[^:]*:(\d+):(\d+):/m.exec(users) ?? /^nobody:[^:]*:(\d+):(\d+):/m.exec(users) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

function asUser({ prefix = [] }: User, [program, args]: [string, string[]]): [string, string[]] {
  const [command = program, ...rest] = [...prefix, program, ...args];
  return [command, rest];
}

/** Debian installs the programs of each version in a separate folder that is not in the PATH. */
function program(name: string): string {
  const debian = '/usr/lib/postgresql';
  const versions = existing(debian).sort((a, b) => Number(b) - Number(a));
  return versions[0] === undefined ? name : join(debian, versions[0], 'bin', name);
}

function existing(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
