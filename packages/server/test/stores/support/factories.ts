import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { Worker } from 'node:worker_threads';
import { LONG_TIMEOUT_MS } from '@undertone/testing/timeouts';
import type { SqlStores } from '../../../src/stores/contracts.ts';
import { openSqliteStores } from '../../../src/stores/sqlite/database.ts';
import { DATABASE_FILE } from '../../../src/stores/sqlite/open.ts';
import { openThreadedStores } from '../../../src/stores/sqlite/threaded-stores.ts';

export const START = Date.UTC(2030, 0, 1);
export const SECOND = 1_000;
export const HOUR = 60 * 60 * SECOND;
export const DAY = 24 * HOUR;

/** A database for the stores. */
export interface StoresFactory {
  readonly name: string;
  /** New stores, with a clock that only the test moves. */
  make(): Promise<TestStores>;
}

export interface TestStores {
  /** Each call is another process on the same store. */
  open(): Promise<SqlStores>;
  /** The stores' clock. */
  now(): number;
  advance(ms: number): void;
  /** Empties the database. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export const local: StoresFactory = {
  name: 'SQLite',
  make: async () => {
    let ms = START;
    return testStores(await tempDir(), {
      open: (dataDir) => openSqliteStores({ dataDir, now: () => ms, answerMs: LONG_TIMEOUT_MS }),
      now: () => ms,
      advance: (by) => {
        ms += by;
      },
    });
  },
};

export const threaded: StoresFactory = {
  name: 'SQLite on a thread of its own',
  make: async () => {
    const controls = new ThreadControls();
    return testStores(await tempDir(), {
      open: (dataDir) =>
        openThreadedStores({ dataDir, startThread: controls.startThread, answerMs: LONG_TIMEOUT_MS }),
      now: () => controls.now(),
      advance: (by) => controls.advance(by),
    });
  },
};

/** Controls real store threads: moves their clock, makes them hang, ends them. */
export class ThreadControls {
  readonly threads: Worker[] = [];
  readonly #shared = new SharedArrayBuffer(16);
  readonly #clock = new Float64Array(this.#shared, 0, 1).fill(START);
  readonly #hangs = new Int32Array(this.#shared, 8, 1);

  readonly startThread = (given: object): Worker => {
    const workerData = { ...given, shared: this.#shared };
    const thread = new Worker(new URL('./controlled-thread.ts', import.meta.url), {
      workerData,
      execArgv: [],
    });
    this.threads.push(thread);
    return thread;
  };

  now(): number {
    return this.#clock[0] ?? 0;
  }

  advance(ms: number): void {
    this.#clock[0] = this.now() + ms;
  }

  /** During the next call that reads the clock, as with a disk that does not answer. */
  hang(): void {
    Atomics.store(this.#hangs, 0, 1);
  }

  resume(): void {
    Atomics.store(this.#hangs, 0, 0);
    Atomics.notify(this.#hangs, 0);
  }
}

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

/** Removed after all tests of the file. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-test-'));
  folders.push(folder);
  return folder;
}

function testStores(
  dataDir: string,
  { open, now, advance }: { open(dataDir: string): Promise<SqlStores> } & Pick<TestStores, 'now' | 'advance'>,
): TestStores {
  const opened: SqlStores[] = [];
  return {
    now,
    advance,
    open: async () => {
      const stores = await open(dataDir);
      opened.push(stores);
      return stores;
    },
    clear: async () => {
      const database = new DatabaseSync(join(dataDir, DATABASE_FILE), { timeout: 5_000 });
      const tables = ['parts', 'results', 'requests', 'keys', 'owners', 'audio_use'];
      for (const table of tables) database.exec(`DELETE FROM ${table}`);
      database.close();
    },
    close: async () => {
      for (const stores of opened) await stores.close();
    },
  };
}
