import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ProblemError } from '../problems.ts';

/** Link-local and cloud metadata addresses, which are refused whatever the settings are. */
const NEVER = blockList([
  ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', 'fe80::/10', 'fd00:ec2::254/128'],
]);

/**
 * Not on the public internet, by the IANA registries of special-purpose addresses: allowed only with
 * SERVICE_WEBHOOK_PRIVATE.
 */
const PRIVATE = blockList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/3'],
  ...['::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['3fff::/20', '5f00::/16', 'fc00::/7', 'fec0::/10', 'ff00::/8'],
]);

/** Callers often test with a receiver of their own, and cannot know the setting's name. */
const HOW_TO_ALLOW = 'SERVICE_WEBHOOK_PRIVATE=true on the server allows http and private addresses';

/** IPv6 addresses that embed an IPv4 address (mapped, translated, NAT64); the embedded address is checked. */
const EMBEDDING = blockList(['::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96']);

export function isAllowed(address: string, allowPrivate: boolean): boolean {
  const [withoutZone = ''] = address.split('%');
  const plain = embedded(withoutZone) ?? withoutZone;
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(plain) === 0 || NEVER.check(plain, family)) return false;
  return allowPrivate || !PRIVATE.check(plain, family);
}

/** Checks scheme, syntax and literal addresses. Host names are checked at every delivery, by `checkedLookup`. */
export function requireWebhookUrl(text: string, allowPrivate: boolean): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw refused('must be a URL such as https://example.org/hook');
  }
  if (url.protocol !== 'https:' && !allowPrivate) throw refused(`must begin with https://. ${HOW_TO_ALLOW}`);
  const host = literalOf(url);
  if (isIP(host) !== 0 && !isAllowed(host, allowPrivate)) {
    throw refused(
      `has a private address, which this server does not send webhooks to${isAllowed(host, true) ? `. ${HOW_TO_ALLOW}` : ''}`,
    );
  }
  return url;
}

/** As `dns.lookup` with `all`. */
export type Resolve = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * The lookup that the connection itself makes, so the checked address is the one connected to: a host name cannot have
 * one address for the check and another for the connection (DNS rebinding).
 */
export function checkedLookup(allowPrivate: boolean, resolve: Resolve = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = (addresses ?? []).filter(({ address }) => isAllowed(address, allowPrivate));
      const [first] = allowed;
      if (error !== null || first === undefined) {
        callback(error ?? new DeliveryError('the receiver has a private address'), '', 0);
      } else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** A failed delivery, in words that name no host. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError';
}

/** The host, without the brackets of an IPv6 address. */
function literalOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function refused(why: string): ProblemError {
  return new ProblemError('bad_request', `webhook_url ${why}.`);
}

function embedded(address: string): string | undefined {
  if (isIP(address) !== 6 || !EMBEDDING.check(address, 'ipv6')) return undefined;
  // The URL parser normalises IPv6 addresses: the last 32 bits become two hexadecimal groups.
  const groups = literalOf(new URL(`http://[${address}]`)).split(':');
  const [high, low] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16)) as [number, number];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

function blockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', bits = ''] = cidr.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
