import { hostname, networkInterfaces } from 'node:os';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import type { Settings } from '../settings.ts';
import { trustedProxies } from './trusted-proxies.ts';

export type BaseUrlOf = (request: FastifyRequest) => string;

/**
 * The start of upload URLs. Anybody can write anything into a `Host` header, so it is used only if a trusted proxy sent it or
 * if it names this machine; otherwise the URL has the address on which the client reached this server.
 */
export function baseUrls(
  { publicUrl, host: listening, port, trustedProxies: proxies }: Settings,
  logger: FastifyBaseLogger,
): BaseUrlOf {
  if (publicUrl !== '') return () => publicUrl;
  const isTrustedProxy = trustedProxies(proxies);
  let warned = false;
  return ({ protocol, host, raw: { socket } }) => {
    const { localAddress = listening, localPort = port, remoteAddress = '' } = socket;
    if (isTrustedProxy(remoteAddress) || namesThisMachine(host, [localAddress, listening])) {
      return `${protocol}://${host}`;
    }
    if (!warned) {
      logger.warn(
        'a client used a host name that is not known to be this server: its upload URLs have the address of the connection instead. Set SERVICE_PUBLIC_URL if clients cannot reach it',
      );
      warned = true;
    }
    const address = plainAddress(localAddress);
    return `${protocol}://${address.includes(':') ? `[${address}]` : address}:${localPort}`;
  };
}

/** Also under another port, as through a tunnel. */
function namesThisMachine(host: string, own: readonly string[]): boolean {
  const url = URL.parse(`http://${host}`);
  if (url === null || !/^[\w.:[\]-]+$/.test(host)) return false;
  const name = url.hostname.replace(/^\[|\]$/g, '');
  if (name === 'localhost' || name === '::1' || /^127(\.\d+){3}$/.test(name)) return true;
  const machine = hostname().toLowerCase();
  if ([machine, `${machine}.local`, ...own.map(plainAddress)].includes(name)) return true;
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === name),
  );
}

/** An IPv4 address on a socket for both versions is `::ffff:192.0.2.1`. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
