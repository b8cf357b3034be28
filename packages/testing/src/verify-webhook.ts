import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import type { Received } from './webhook-receiver.ts';

/** `make test` installs the package there from ../requirements.txt. */
const PYTHON = fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));
const PROGRAM = fileURLToPath(new URL('./verify_webhook.py', import.meta.url));

/** Throws unless the `standardwebhooks` packages of both languages accept every signature. */
export async function verifyAll(secret: string, received: readonly Received[]): Promise<void> {
  for (const { body, headers } of received) {
    new Webhook(secret).verify(body, headers as Record<string, string>);
  }
  const lines = received.map(({ body, headers }) => JSON.stringify({ secret, body, headers }));
  const running = promisify(execFile)(PYTHON, [PROGRAM]);
  running.child.stdin?.end(lines.join('\n'));
  const { stdout } = await running;
  if (stdout.trim() !== 'ok') throw new Error(stdout);
}
