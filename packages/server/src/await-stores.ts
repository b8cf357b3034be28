import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATHS, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import { requestIdOf } from './http/request-log.ts';
import { retryLater } from './problems.ts';
import type { Settings } from './settings.ts';
import { StoreUnavailableError } from './stores/errors.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

type Addresses = Pick<Settings, 'host' | 'port' | 'operationsPort'>;

/** Retries `open` while its store is unavailable, and tells it that it was. Meanwhile the process is alive, but not ready. */
export async function openWhenAvailable<T>(
  open: (afterOutage: boolean) => Promise<T>,
  addresses: Addresses,
  logger: FastifyBaseLogger,
): Promise<T> {
  try {
    return await open(false);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    logger.error({ why: error.reason }, 'waiting for the store; the server starts when it is available');
  }
  const servers = await listen(addresses);
  try {
    const opened = await retry(open);
    logger.info('the store is available');
    return opened;
  } finally {
    await Promise.all(servers.map(close));
  }
}

async function retry<T>(open: (afterOutage: true) => Promise<T>): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    await sleep(pause);
    try {
      return await open(true);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }
}

async function listen({ host, port, operationsPort }: Addresses): Promise<Server[]> {
  const ports = operationsPort > 0 ? [port, operationsPort] : [port];
  return Promise.all(
    ports.map(async (one) => {
      const server = createServer((request, response) => {
        const id = requestIdOf(request);
        if (request.url?.split('?', 1)[0] === PATHS.health) {
          response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}');
          return;
        }
        const problem = retryLater('overloaded', 'The server is waiting for its store. Try again later.', 5);
        const headers = {
          'content-type': PROBLEM_CONTENT_TYPE,
          [REQUEST_ID_HEADER]: id,
          connection: 'close',
        };
        response.writeHead(problem.status, { ...problem.headers, ...headers });
        response.end(JSON.stringify(problem.toBody(id)));
      });
      await once(server.listen(one, host), 'listening');
      return server;
    }),
  );
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
