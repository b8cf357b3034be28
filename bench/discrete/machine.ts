import { availableParallelism, cpus, totalmem } from 'node:os';

/** What figures were measured on, in one line. */
export function machine(): string {
  const cpu = cpus()[0]?.model ?? 'unknown processor';
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  return `${cpu} (${process.arch}), ${availableParallelism()} cores, ${gibibytes} GiB, Node ${process.version}`;
}
