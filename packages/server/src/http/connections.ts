import type { IncomingMessage, Server } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Metrics } from '../operators/metrics.ts';
import { type IsTrustedProxy, trustedProxies } from './trusted-proxies.ts';

declare module 'fastify' {
  interface FastifyInstance {
    connections: Connections;
  }
}

export interface ConnectionLimits {
  /** Open connections, with and without a key. */
  readonly max: number;
  /** Open connections without a key, from all addresses. */
  readonly maxUnknown: number;
  /** Open connections without a key, from one address. */
  readonly maxUnknownPerAddress: number;
  /** A connection without a key is closed when nothing was answered on it for this long. */
  readonly unknownMs: number;
  /** A protocol that sends its key in a message may send this many bytes before. */
  readonly unknownBytes: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  max: 2_048,
  maxUnknown: 1_024,
  maxUnknownPerAddress: 512,
  unknownMs: 10_000,
  unknownBytes: 16 * 1024,
};

type RefusalReason = 'too_many' | 'timeout' | 'too_much_data';

interface Unknown {
  readonly timer: NodeJS.Timeout;
  /** Bytes that the client has received. */
  received: number;
}

interface ConnectionsOptions {
  readonly limits: ConnectionLimits;
  /** Their connections carry many callers, so they are not counted by address; the proxy limits its own clients. */
  readonly trustedProxies: readonly string[];
  readonly metrics: Metrics;
  readonly logger: FastifyBaseLogger;
}

const LOG_EVERY_MS = 1_000;

/**
 * Limits connections that have not shown a valid key, so that they can never keep out those that have. When there are too
 * many, the oldest idle one of the busiest address is closed, and the new one gets the time to send its key.
 *
 * An owner may have as many connections as it leaves free, so one never takes them all. Beyond that, its idle ones are closed.
 */
export class Connections {
  readonly limits: ConnectionLimits;
  readonly #options: ConnectionsOptions;
  readonly #isTrustedProxy: IsTrustedProxy;
  /** By address, the oldest first. */
  readonly #unknown = new Map<string, Map<Socket, Unknown>>();
  /** By owner, the longest unused first. */
  readonly #known = new Map<string, Set<Socket>>();
  /** Who used a connection last: a proxy may carry several owners over one. */
  readonly #ownerOf = new WeakMap<Socket, string>();
  /** Requests that are being handled. */
  readonly #handling = new WeakMap<Socket, Set<IncomingMessage>>();
  #open = 0;
  readonly #refusals = new Map<RefusalReason, number>();
  #logTimer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.#isTrustedProxy = trustedProxies(options.trustedProxies);
  }

  watch(server: Server): void {
    server.maxConnections = this.limits.max;
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('drop', () => this.#count('too_many'));
  }

  /** The connection has shown a valid key, or the signed URL of a part. */
  markKnown(socket: Socket, owner: string): void {
    this.#forget(socket);
    if (!this.#isCounted(socket) || socket.destroyed) return;
    const before = this.#ownerOf.get(socket);
    if (before === undefined) socket.once('close', () => this.#leaveGroup(socket));
    // Also if the owner is the same: it is added again at the end of the set.
    this.#leaveGroup(socket);
    const group = this.#known.get(owner) ?? new Set();
    this.#known.set(owner, group.add(socket));
    this.#ownerOf.set(socket, owner);
    if (before !== owner && group.size > this.limits.max - this.#open) this.#evict(group, socket);
  }

  #leaveGroup(socket: Socket): void {
    const owner = this.#ownerOf.get(socket) ?? '';
    const group = this.#known.get(owner);
    group?.delete(socket);
    if (group?.size === 0) this.#known.delete(owner);
  }

  beginRequest(request: IncomingMessage): void {
    const handling = this.#handling.get(request.socket) ?? new Set();
    this.#handling.set(request.socket, handling.add(request));
  }

  /** The response is ready to be sent. */
  endRequest(request: IncomingMessage): void {
    this.#handling.get(request.socket)?.delete(request);
  }

  /** Ends the connection at once: a polite close would wait for the other side. */
  refuse(socket: Socket, reason: RefusalReason): void {
    this.#count(reason);
    socket.destroy();
  }

  #add(socket: Socket): void {
    this.#open++;
    socket.once('close', () => this.#open--);
    if (!this.#isCounted(socket)) return;
    const address = addressOf(socket);
    const group = this.#unknown.get(address) ?? new Map<Socket, Unknown>();
    const { maxUnknown, maxUnknownPerAddress, unknownMs } = this.limits;
    if (group.size >= maxUnknownPerAddress) this.#evict(group, socket);
    else if (this.#unknownCount() >= maxUnknown) this.#evict(this.#largestGroup(), socket);
    if (socket.destroyed) return;
    const entry: Unknown = {
      timer: setTimeout(() => this.#check(socket, entry), unknownMs).unref(),
      received: 0,
    };
    group.set(socket, entry);
    this.#unknown.set(address, group);
    socket.once('close', () => {
      clearTimeout(entry.timer);
      group.delete(socket);
      if (group.size === 0 && this.#unknown.get(address) === group) this.#unknown.delete(address);
    });
  }

  #evict(group: ReadonlyMap<Socket, unknown> | ReadonlySet<Socket>, newcomer: Socket): void {
    const idle = [...group.keys()].find((socket) => socket !== newcomer && !this.#isBusy(socket));
    this.refuse(idle ?? newcomer, 'too_many');
  }

  #isBusy(socket: Socket): boolean {
    return (this.#handling.get(socket)?.size ?? 0) > 0;
  }

  #check(socket: Socket, entry: Unknown): void {
    const received = socket.bytesWritten - socket.writableLength;
    if (this.#isBusy(socket) || received > entry.received) {
      entry.received = received;
      entry.timer.refresh();
    } else if (received > 0) {
      // It was answered and is idle now, which is no refusal.
      socket.destroy();
    } else {
      this.refuse(socket, 'timeout');
    }
  }

  /** No longer without a key. */
  #forget(socket: Socket): void {
    const address = addressOf(socket);
    const group = this.#unknown.get(address);
    clearTimeout(group?.get(socket)?.timer);
    group?.delete(socket);
    if (group?.size === 0) this.#unknown.delete(address);
  }

  #isCounted(socket: Socket): boolean {
    const address = addressOf(socket);
    return isIP(address) !== 0 && !this.#isTrustedProxy(address);
  }

  #unknownCount(): number {
    let count = 0;
    for (const { size } of this.#unknown.values()) count += size;
    return count;
  }

  #largestGroup(): Map<Socket, Unknown> {
    let largest = new Map<Socket, Unknown>();
    for (const group of this.#unknown.values()) if (group.size > largest.size) largest = group;
    return largest;
  }

  /** One log line a second at most: refusals come in thousands. */
  #count(reason: RefusalReason): void {
    this.#options.metrics.connectionsRefused.inc({ reason });
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
    this.#logTimer ??= setTimeout(() => {
      this.#logTimer = undefined;
      this.#options.logger.warn({ refused: Object.fromEntries(this.#refusals) }, 'connections were refused');
      this.#refusals.clear();
    }, LOG_EVERY_MS).unref();
  }
}

/** Before the key hooks: counts what is being handled, so that it is neither timed out nor evicted. */
export function guardConnections(app: FastifyInstance, connections: Connections): void {
  connections.watch(app.server);
  app.decorate('connections', connections);
  app.addHook('onRequest', (request, reply, next) => {
    connections.beginRequest(request.raw);
    reply.raw.once('close', () => connections.endRequest(request.raw));
    next();
  });
  app.addHook('onSend', async (request) => connections.endRequest(request.raw));
}

/** After the key hooks. */
export function markCallers(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, next) => {
    if (request.caller !== null) app.connections.markKnown(request.raw.socket, request.caller.owner);
    next();
  });
}

function addressOf(socket: Socket): string {
  return socket.remoteAddress ?? '';
}
