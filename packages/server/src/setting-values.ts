// How the values of settings are read. Each function throws an Error whose message completes "SERVICE_X must be ...".
import { isIP } from 'node:net';

export function integer(min: number, max: number): (text: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new Error(`a whole number from ${min} to ${max}`);
    }
    return number;
  };
}

export function oneOf<T extends string>(choices: readonly T[]): (text: string) => T {
  return (value) => {
    // Python programs write log levels in capitals, and may share the variable.
    const choice = choices.find((candidate) => candidate === value.toLowerCase());
    if (choice === undefined) throw new Error(`one of ${choices.join(', ')}`);
    return choice;
  };
}

export function trueOrFalse(value: string): boolean {
  return oneOf(['true', 'false'])(value) === 'true';
}

export function autoOr(min: number, max: number): (text: string) => number | 'auto' {
  return (value) => {
    if (value === 'auto') return value;
    try {
      return integer(min, max)(value);
    } catch (error) {
      throw new Error(`auto or ${(error as Error).message}`);
    }
  };
}

export function weightsName(value: string): string {
  if (!/^[\w.-]{1,100}$/.test(value)) throw new Error('the name of weights in the models folder');
  return value;
}

export function byteCount(value: string): number {
  const match = /^(\d{1,15})\s*([KMGT]?)(i?)B?$/i.exec(value);
  if (match === null) throw new Error('a number of bytes, such as 10737418240 or 10GiB');
  const [, digits, unit = '', binary] = match;
  return Number(digits) * (binary ? 1024 : 1000) ** ['', 'K', 'M', 'G', 'T'].indexOf(unit.toUpperCase());
}

export function cidrs(value: string): readonly string[] {
  const list = value.split(',').map((entry) => entry.trim());
  return list.filter(Boolean).map((entry) => {
    const [address = '', bits, more] = entry.split('/');
    const longest = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
    const valid = bits === undefined ? longest > 0 : /^\d{1,3}$/.test(bits) && Number(bits) <= longest;
    if (!valid || more !== undefined) throw new Error('addresses or CIDRs such as 10.0.0.0/8');
    return entry;
  });
}

export function host(value: string): string {
  if (!/^[\w.:%-]+$/.test(value)) throw new Error('a host name or an IP address');
  return value;
}

export function apiKey(value: string): string {
  // Header values are printable ASCII; shorter keys could be guessed.
  if (value !== '' && !/^[\x21-\x7e]{16,256}$/.test(value)) {
    throw new Error('16 to 256 printable characters without spaces');
  }
  return value;
}

export function secret(value: string): string {
  if (value !== '' && value.length < 16) throw new Error('16 characters or more');
  return value;
}

export function databaseUrl(value: string): string {
  if (value !== '' && !/^postgres(ql)?:\/\/./.test(value)) {
    throw new Error('an address such as postgres://user:password@host:5432/name');
  }
  return value;
}

export function bucket(value: string): string {
  if (value !== '' && !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value)) {
    throw new Error('the name of an S3 bucket: 3 to 63 lowercase letters, digits, dots and hyphens');
  }
  return value;
}

export function region(value: string): string {
  if (!/^[a-z0-9-]{1,64}$/.test(value)) throw new Error('the name of a region such as eu-north-1');
  return value;
}

/** Needs no escaping in a URL. The result ends in a slash. */
export function prefix(value: string): string {
  if (!/^[\w-][\w.-]*(\/[\w-][\w.-]*)*\/?$/.test(value)) {
    throw new Error('letters, digits, dots, hyphens and slashes, such as undertone/');
  }
  return value.replace(/\/?$/, '/');
}

export function baseUrl(value: string): string {
  if (value === '') return value;
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new Error('an http or https address such as https://voice.example.org');
  }
  return url.href.replace(/\/+$/, '');
}

export function origins(value: string): readonly string[] {
  const list = value.split(',').map((entry) => entry.trim());
  return list.filter(Boolean).map((entry) => {
    if (entry === '*') return entry;
    const url = URL.parse(entry);
    if (!url || url.origin === 'null' || !/^\/?$/.test(url.pathname) || url.search || url.hash) {
      throw new Error('origins such as https://app.example.org, separated by commas, or *');
    }
    return url.origin;
  });
}
