import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What to do with a webhook: answer with a status, reset the connection, or never answer. */
export type Reaction = number | 'reset' | 'hang' | ((response: ServerResponse) => void);

/** `attempt` counts webhooks with the same id, from 1. */
type React = (received: Received, attempt: number) => Reaction;

/** A real HTTP server that receives webhooks and fails as configured. */
export class Receiver {
  readonly received: Received[] = [];
  /** Ids answered with 2xx. */
  readonly taken = new Set<string>();
  readonly #server: Server;
  readonly #react: React;

  private constructor(react: React) {
    this.#react = react;
    this.#server = createServer(async (request, response) => {
      request.on('error', () => undefined);
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of request) chunks.push(chunk);
      } catch {
        return;
      }
      const id = String(request.headers['webhook-id']);
      const received = { id, headers: request.headers, body: Buffer.concat(chunks).toString() };
      this.received.push(received);
      const reaction = this.#react(received, this.received.filter((one) => one.id === id).length);
      if (typeof reaction === 'number' && reaction < 300) this.taken.add(id);
      if (typeof reaction === 'number') response.writeHead(reaction).end('this body is ignored');
      else if (reaction === 'reset') request.socket.resetAndDestroy();
      else if (reaction !== 'hang') reaction(response);
    });
  }

  static async start(react: React, port = 0): Promise<Receiver> {
    const receiver = new Receiver(react);
    await once(receiver.#server.listen(port, '127.0.0.1'), 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
