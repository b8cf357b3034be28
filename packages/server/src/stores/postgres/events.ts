import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { RequestEvents } from '../contracts.ts';
import { connectionOptions } from './database.ts';
import { CHANNEL } from './dialect.ts';

const CONNECT_MS = 950;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
const CLOSE_MS = 500;

/**
 * Listens to other processes on a connection of its own, which is reopened whenever it breaks. Events in between are lost:
 * workers also poll.
 */
export class PostgresEvents {
  readonly #url: string;
  readonly #closing = new AbortController();
  #client: pg.Client | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(url: string) {
    this.#url = url;
  }

  start(events: RequestEvents): void {
    this.#running = this.#run(events);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const closed = Promise.all([this.#client?.end().catch(() => undefined), this.#running]);
    // A connection that hangs never closes.
    await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
  }

  async #run(events: RequestEvents): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.#closing.signal.aborted) {
      const client = new pg.Client({ ...connectionOptions(this.#url), connectionTimeoutMillis: CONNECT_MS });
      this.#client = client;
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => undefined);
      client.on('notification', ({ payload = '' }) => dispatch(events, payload));
      try {
        await client.connect();
        await client.query(`LISTEN ${CHANNEL}`);
        pause = FIRST_PAUSE_MS;
        events.queued();
        if (!this.#closing.signal.aborted) await ended;
      } catch {
        // Store calls report what is wrong.
      }
      await client.end().catch(() => undefined);
      const { signal } = this.#closing;
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }
}

function dispatch(events: RequestEvents, payload: string): void {
  const [what, id = ''] = payload.split(' ');
  if (what === 'queued') events.queued();
  if (what === 'over') events.over(id);
}
