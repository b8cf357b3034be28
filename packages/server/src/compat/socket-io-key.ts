import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'socket.io';
import type { Connections } from '../http/connections.ts';

type Engine = Server['engine'];
type EngineSocket = Socket['conn'];
type EngineRequest = IncomingMessage & { _query: { sid?: string } };

/**
 * Socket.IO accepts a connection first and gets the key later, in the CONNECT packet; some clients upgrade from polling to
 * WebSocket before they send it. Until then each connection of a client may send only as much as that packet needs.
 */
export class SocketIoKeys {
  readonly #clients = new Map<string, EngineSocket>();
  readonly #connections: Connections;
  /** Resolves with the id of the key, or null if the client closed before it showed one. */
  readonly #known = new WeakMap<EngineSocket, PromiseWithResolvers<string | null>>();
  readonly #keys = new WeakMap<EngineSocket, string>();

  constructor(engine: Engine, connections: Connections) {
    this.#connections = connections;
    engine.use((request: EngineRequest, response: ServerResponse, next: (error?: Error) => void) =>
      this.#check(request, response, next),
    );
    engine.on('connection', (socket: EngineSocket) => this.#watch(socket));
  }

  markKnown(socket: EngineSocket, key: string): void {
    this.#keys.set(socket, key);
    this.#known.get(socket)?.resolve(key);
    this.#connections.markKnown(socket.request.socket, key);
  }

  #watch(socket: EngineSocket): void {
    const known = Promise.withResolvers<string | null>();
    this.#known.set(socket, known);
    const { unknownMs } = this.#connections.limits;
    const timer = setTimeout(() => cutConnection(socket), unknownMs);
    void known.promise.then(() => clearTimeout(timer));
    const { id } = socket as unknown as { id: string };
    this.#clients.set(id, socket);
    socket.once('close', () => {
      this.#clients.delete(id);
      known.resolve(null);
    });
    if (socket.transport.name === 'websocket') this.#limitBytes(socket, socket.request.socket);
  }

  /** The engine's own limit is that of a known client, and holds for each message alone. */
  #limitBytes(socket: EngineSocket, tcp: IncomingMessage['socket']): void {
    const start = tcp.bytesRead;
    const onData = () => {
      if (this.#keys.has(socket)) tcp.off('data', onData);
      else if (tcp.bytesRead - start > this.#connections.limits.unknownBytes) {
        this.#connections.refuse(tcp, 'too_much_data');
      }
    };
    tcp.on('data', onData);
  }

  #check(request: EngineRequest, response: ServerResponse, next: (error?: Error) => void): void {
    const client = this.#clients.get(request._query.sid ?? '');
    if (client === undefined) {
      next();
    } else if (this.#keys.has(client)) {
      this.#connections.markKnown(request.socket, this.#keys.get(client));
      next();
    } else if (request.headers.upgrade !== undefined) {
      this.#limitBytes(client, request.socket);
      void this.#known.get(client)?.promise.then((key) => {
        if (key !== null) this.#connections.markKnown(request.socket, key);
      });
      next();
    } else if (request.method === 'POST' && !this.#isSmall(request)) {
      response.writeHead(413, { connection: 'close' }).end(() => {
        this.#connections.refuse(request.socket, 'too_much_data');
      });
    } else {
      next();
    }
  }

  #isSmall({ headers }: IncomingMessage): boolean {
    return Number(headers['content-length'] ?? Number.NaN) <= this.#connections.limits.unknownBytes;
  }
}

/** At once: a polite close would wait up to 30 s for a client that does not read. */
export function cutConnection(socket: EngineSocket): void {
  const { socket: webSocket } = socket.transport as { socket?: { terminate?: () => void } };
  if (webSocket?.terminate) webSocket.terminate();
  else socket.close(true);
}
