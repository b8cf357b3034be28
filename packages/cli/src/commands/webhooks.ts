import { createHmac, randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { addServerFlags, connect, parseUrl } from '../client.ts';
import { UserError } from '../user-error.ts';

const TIMEOUT_MS = 15_000;

const MORE = `
After \`undertone upload call.wav --webhook URL\` the server notifies the URL when
the result is ready, as the Standard Webhooks specification
(standardwebhooks.com) defines. Its libraries verify the signature with the
secret that \`undertone webhooks secret\` prints. The test event is sent from this
machine, and shows that your receiver answers and accepts the signature. The
server itself sends only to https addresses, and to private ones only if
SERVICE_WEBHOOK_PRIVATE allows it.

Example:
  undertone webhooks test https://example.com/undertone`;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .summary('test a webhook receiver, or print the signing secret')
    .description('Webhooks: the server notifies your own service when a result is ready.')
    .addHelpText('after', MORE);
  const test = webhooks
    .command('test')
    .description('Sends a signed test event to your receiver, as the server would.')
    .argument('<url>', 'address of your receiver', parseUrl);
  addServerFlags(test)
    .addHelpText('after', MORE)
    .action(async (url: string) => {
      const secret = await connect(test).asynch.webhookSecret();
      await deliver(url, secret);
    });
  const secret = webhooks.command('secret').description("Prints this key's webhook signing secret.");
  addServerFlags(secret).action(async () => {
    process.stdout.write(`${await connect(secret).asynch.webhookSecret()}\n`);
  });
}

async function deliver(url: string, secret: string): Promise<void> {
  const body = JSON.stringify({
    type: 'webhook.test',
    timestamp: new Date().toISOString(),
    data: { request_id: '00000000-0000-0000-0000-000000000000', label: 'test', status: 'completed' },
  });
  const started = performance.now();
  const headers = { 'content-type': 'application/json', ...signatureOf(secret, body) };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal }).catch(
    (error: Error) => {
      const { message } = (error.cause as Error | undefined) ?? error;
      throw new UserError(`${url} cannot be reached: ${message}.`, { cause: error });
    },
  );
  await response.body?.cancel();
  const took = `${response.status} in ${Math.round(performance.now() - started)} ms`;
  if (response.ok) {
    process.stdout.write(`Delivered: ${url} answered ${took}.\n`);
    return;
  }
  throw new UserError(
    `${url} answered ${took}. Only 2xx means delivered; after any other answer, including redirects, the server retries later.`,
  );
}

/** The headers of the Standard Webhooks specification. */
function signatureOf(secret: string, body: string): Record<string, string> {
  const id = `msg_${randomUUID()}`;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
