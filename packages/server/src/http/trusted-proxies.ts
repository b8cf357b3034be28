import { BlockList, isIP } from 'node:net';

/** True for the address of a proxy whose headers are believed. */
export type IsTrustedProxy = (address: string) => boolean;

/** `proxies`: addresses and CIDRs. */
export function trustedProxies(proxies: readonly string[]): IsTrustedProxy {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = familyOf(address);
    list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
  }
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
