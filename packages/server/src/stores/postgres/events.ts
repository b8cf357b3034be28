import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { RequestEvents } from '../request-store.ts';
import { connectionOptions } from './database.ts';
import { CHANNEL } from './requests.ts';

const CONNECT_MS = 950;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Hears what other processes did, on a connection of its own that is opened again whenever it breaks. What happens in
 * between is not heard: workers look for themselves now and then as well.
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
    await this.#client?.end().catch(() => undefined);
    await this.#running;
  }

  async #run(events: RequestEvents): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.#closing.signal.aborted) {
      const client = new pg.Client({ ...connectionOptions(this.#url), connectionTimeoutMillis: CONNECT_MS });
      this.#client = client;
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => undefined);
      client.on('notification', ({ payload = '' }) => tell(events, payload));
      try {
        await client.connect();
        await client.query(`LISTEN ${CHANNEL}`);
        pause = FIRST_PAUSE_MS;
        events.queued();
        if (!this.#closing.signal.aborted) await ended;
      } catch {
        // The calls of the stores say what is wrong.
      }
      await client.end().catch(() => undefined);
      const { signal } = this.#closing;
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }
}

function tell(events: RequestEvents, payload: string): void {
  const [what, id = ''] = payload.split(' ');
  if (what === 'queued') events.queued();
  if (what === 'over') events.over(id);
}
