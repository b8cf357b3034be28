import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly origin: string;
  cuts: number;
  stop(): Promise<void>;
}

/** A proxy that cuts the first `cuts` connections after `afterBytes` bytes towards the server. */
export async function cuttingProxy(
  target: () => string,
  { cuts, afterBytes }: { cuts: number; afterBytes: number },
): Promise<CuttingProxy> {
  const open = new Set<Socket>();
  const proxy = { origin: '', cuts: 0, stop };
  const server = createServer((client) => {
    const { hostname, port } = new URL(target());
    const upstream = connect(Number(port), hostname);
    let passed = 0;
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (chunk) => {
      passed += chunk.length;
      if (passed <= afterBytes || proxy.cuts >= cuts) return;
      proxy.cuts++;
      client.destroy();
    });
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;

  async function stop(): Promise<void> {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, 'close');
  }
}
