// One key that sends as much of everything as it can, as a process of its own: `startBusyKey` starts this file. It takes
// commands from its standard input and ends with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { API_KEY_HEADER, ASYNCH_PATHS, type InitiateResult, PATHS } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { FORM_TYPE } from '@undertone/testing/form';
import { head, RawClient } from '@undertone/testing/socket';
import { StreamClient } from '@undertone/testing/stream-client';
import { longWav } from '@undertone/testing/wav';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { Client } from '../support/client.ts';
import { longSilence } from '../support/long-silence.ts';
import { clipForm } from '../support/voice.ts';

const SLOW_CONNECTIONS_OF_EACH_KIND = 100;
const SLOW_BODY_BYTES = 1_000_000;
const LONG_FILES = 4;
const LONG_FILE_SECONDS = 24 * 3600;
const DEAD_WEBHOOKS = 64;
const STREAMS = 200;
/** More than the server accepts. */
const IDLE_CONNECTIONS = 2_200;
const COUNTS = 'counts';

interface BusyKey {
  /** What it has done so far. */
  counts(): Promise<string>;
  /** From now on it also sends short recordings, with as many clients as this. */
  sendClips(clients: string): void;
  stop(): Promise<void>;
}

/** Resolves when everything is under way. `uploads` are sent one after another. */
export async function startBusyKey(url: string, key: string, uploads: string): Promise<BusyKey> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), url, key, uploads], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const exit = once(child, 'exit');
  const counts = async () => {
    child.stdin.write(`${COUNTS}\n`);
    const line = await lines.next();
    if (line.done) throw new Error('the busy key has ended');
    return line.value;
  };
  await counts();
  return {
    counts,
    sendClips: (clients) => child.stdin.write(`${clients}\n`),
    stop: async () => {
      child.stdin.end();
      await exit;
    },
  };
}

if (import.meta.main) {
  // Its own work would not be on the server's cores.
  setPriority(10);
  const [url = '', key = '', uploads = '0'] = process.argv.slice(2);
  const port = Number(new URL(url).port);
  const asynch = new AsynchClient(url, key);
  const counts: Record<string, number> = {};
  const dead = await Receiver.start(() => {
    count('webhooks that get no answer');
    return 'hang';
  });

  await sendDeadWebhooks();
  const file = await longSilence(LONG_FILE_SECONDS);
  for (let i = 0; i < LONG_FILES; i++) {
    await asynch.upload(file, 1);
    count('files of 24 hours');
  }
  for (let i = 0; i < STREAMS; i++) await openStream();
  for (let i = 0; i < IDLE_CONNECTIONS; i++) {
    void idle();
    if (i % 50 === 0) await sleep(20);
  }
  for (let i = 0; i < SLOW_CONNECTIONS_OF_EACH_KIND; i++) {
    void sendSlowly('slow short recordings', async () =>
      head('POST', PATHS.discrete, bodyHeaders(FORM_TYPE)),
    );
    void sendSlowly('slow long recordings', async () =>
      head('POST', PATHS.asynch + ASYNCH_PATHS.requests, bodyHeaders('audio/wav')),
    );
    void sendSlowly('slow parts', async () => {
      const [first] = ((await (await asynch.initiate({})).json()) as InitiateResult).presigned_urls;
      // Other origins are not this server's to protect.
      if (first?.url.startsWith(url) !== true) return null;
      return head('PUT', first.url.slice(url.length), bodyHeaders('audio/wav'));
    });
  }
  void sendUploads(longWav(6));
  const commands = createInterface(process.stdin);
  commands.on('line', (line) => {
    if (line === COUNTS) console.log(JSON.stringify(counts));
    else for (let i = 0; i < Number(line); i++) void sendClips();
  });
  commands.on('close', () => process.exit());

  function count(what: string): void {
    counts[what] = (counts[what] ?? 0) + 1;
  }

  function bodyHeaders(type: string): Record<string, string | number> {
    return { [API_KEY_HEADER]: key, 'content-type': type, 'content-length': SLOW_BODY_BYTES };
  }

  async function sendClips(): Promise<void> {
    const clips = new Client({ url, key }, { body: clipForm() });
    for (;;) {
      const { status } = await clips.post().catch(() => ({ status: 0 }));
      count(`short recordings (${status})`);
      if (status !== 200) await sleep(500);
    }
  }

  /** Too short to be processed, so the webhook is due at once. */
  async function sendDeadWebhooks(): Promise<void> {
    const short = longWav(1);
    const ids = await Promise.all(
      Array.from({ length: DEAD_WEBHOOKS }, () => asynch.upload(short, 1, { webhook_url: dead.url })),
    );
    for (const id of ids) await asynch.settled(id);
  }

  /** Says nothing once it is open. */
  async function openStream(): Promise<void> {
    const { socket, closed } = new StreamClient(url, key);
    await Promise.race([once(socket, 'open'), closed]).then(
      () => count('silent streams'),
      () => count('streams refused'),
    );
  }

  /** Shows its key once and then says nothing; again when it is closed. */
  async function idle(): Promise<void> {
    for (;;) {
      const client = new RawClient(port).send(head('GET', PATHS.models, { [API_KEY_HEADER]: key }));
      count('idle connections');
      await client.closed;
      await sleep(5_000);
    }
  }

  /** A byte a second; again when it is cut off. */
  async function sendSlowly(what: string, request: () => Promise<string | null>): Promise<void> {
    for (;;) {
      const text = await request().catch(() => '');
      if (text === null) return;
      if (text !== '') {
        const client = new RawClient(port).send(text);
        count(what);
        const timer = setInterval(() => client.send('x'), 1_000);
        await client.closed;
        clearInterval(timer);
      }
      await sleep(1_000);
    }
  }

  /** Half of them are completed, half stay open. Some may be refused. */
  async function sendUploads(recording: Buffer): Promise<void> {
    for (let i = 0; i < Number(uploads); i++) {
      const work = i % 2 === 0 ? asynch.upload(recording, 1, { webhook_url: dead.url }) : asynch.initiate({});
      await work.then(
        () => count('uploads'),
        () => count('uploads refused'),
      );
    }
  }
}
