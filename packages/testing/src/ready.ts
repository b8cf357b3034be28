import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { PATHS } from '@undertone/contract';

/** A free port, for a server in another process. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export function isReady(url: string): Promise<boolean> {
  return fetch(url + PATHS.ready).then(
    ({ ok }) => ok,
    () => false,
  );
}
