import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'socket.io';
import type { Hold } from '../held-bytes.ts';
import type { Connections } from '../http/connections.ts';
import { UnreadBytes } from '../streams/unread-bytes.ts';

type Engine = Server['engine'];
type EngineSocket = Socket['conn'];
type EngineRequest = IncomingMessage & { _query: { sid?: string } };

interface KnownClient {
  readonly owner: string;
  /** Counts the bytes of unfinished messages towards the owner. */
  readonly memory: () => Hold;
}

/**
 * Socket.IO accepts a connection first and gets the key later, in the CONNECT packet; some clients upgrade from polling to
 * WebSocket before they send it. Until then each connection of a client may send only as much as that packet needs. Then what
 * has not arrived completely is held in the memory of its owner.
 */
export class SocketIoKeys {
  readonly #clients = new Map<string, EngineSocket>();
  readonly #connections: Connections;
  /** Resolves with who the client is, or null if it closed before it showed a key. */
  readonly #known = new WeakMap<EngineSocket, PromiseWithResolvers<KnownClient | null>>();
  readonly #keys = new WeakMap<EngineSocket, KnownClient>();

  constructor(engine: Engine, connections: Connections) {
    this.#connections = connections;
    engine.use((request: EngineRequest, response: ServerResponse, next: (error?: Error) => void) =>
      this.#check(request, response, next),
    );
    engine.on('connection', (socket: EngineSocket) => this.#watch(socket));
  }

  markKnown(socket: EngineSocket, client: KnownClient): void {
    this.#keys.set(socket, client);
    this.#known.get(socket)?.resolve(client);
    this.#connections.markKnown(socket.request.socket, client.owner);
  }

  #watch(socket: EngineSocket): void {
    const known = Promise.withResolvers<KnownClient | null>();
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
      if (tcp.bytesRead - start > this.#connections.limits.unknownBytes) {
        this.#connections.refuse(tcp, 'too_much_data');
      }
    };
    tcp.on('data', onData);
    void this.#known.get(socket)?.promise.then((known) => {
      tcp.off('data', onData);
      if (known !== null) countUnread(socket, tcp, known.memory());
    });
  }

  #check(request: EngineRequest, response: ServerResponse, next: (error?: Error) => void): void {
    const client = this.#clients.get(request._query.sid ?? '');
    if (client === undefined) {
      next();
      return;
    }
    const isUpgrade = request.headers.upgrade !== undefined;
    if (isUpgrade) this.#limitBytes(client, request.socket);
    const known = this.#keys.get(client);
    if (known !== undefined) {
      this.#connections.markKnown(request.socket, known.owner);
      next();
    } else if (isUpgrade) {
      void this.#known.get(client)?.promise.then((late) => {
        if (late !== null) this.#connections.markKnown(request.socket, late.owner);
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

/** A complete message is read at once. */
function countUnread(socket: EngineSocket, tcp: IncomingMessage['socket'], hold: Hold): void {
  const unread = new UnreadBytes(tcp, hold, () => cutConnection(socket));
  socket.on('packet', () => {
    unread.messageComplete();
    unread.messageConsumed();
  });
}

/** At once: a polite close would wait up to 30 s for a client that does not read. */
export function cutConnection(socket: EngineSocket): void {
  const { socket: webSocket } = socket.transport as { socket?: { terminate?: () => void } };
  if (webSocket?.terminate) webSocket.terminate();
  else socket.close(true);
}
