import { BlockList, isIP } from 'node:net';
import { ProblemError } from '../problems.ts';

/** Link-local addresses and those under which clouds tell a machine its secrets: never, whatever is set. */
const NEVER = blockList(['169.254.0.0/16', '100.100.100.200/32', 'fe80::/10', 'fd00:ec2::254/128']);

/** Not on the public internet: only where the operator says so. */
const PRIVATE = blockList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  ...['::/96', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16', 'fc00::/7', 'ff00::/8'],
]);

/** IPv4 addresses written as IPv6: mapped ones, and those of a NAT64 gateway. What counts is the address inside. */
const EMBEDDING = blockList(['::ffff:0:0/96', '64:ff9b::/96']);

/** May a webhook be sent to this address? */
export function isAllowed(address: string, allowPrivate: boolean): boolean {
  const [withoutZone = ''] = address.split('%');
  const plain = embedded(withoutZone) ?? withoutZone;
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(plain) === 0 || NEVER.check(plain, family)) return false;
  return allowPrivate || !PRIVATE.check(plain, family);
}

/** Initiate: scheme, syntax and literal addresses. Names are looked at when a webhook is sent. */
export function requireWebhookUrl(text: string, allowPrivate: boolean): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw refused('must be an address such as https://example.org/hook');
  }
  if (url.protocol !== 'https:' && !allowPrivate) throw refused('must begin with https://');
  const host = literalOf(url);
  if (isIP(host) !== 0 && !isAllowed(host, allowPrivate)) {
    throw refused('is a private address, which this server sends nothing to');
  }
  return url;
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
  // The URL parser writes every IPv6 address in one way, the last 32 bits as two hexadecimal groups.
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
