import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  contentType: string | undefined;
  requestId: string | undefined;
  body: string;
}

/** A TCP client that sends exactly the given bytes. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received = '';

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.#received += text;
    });
    // The server may end a connection with a reset.
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  /** Waits for the next complete answer. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const parsed = parse(this.#received);
      if (parsed !== null) {
        this.#received = this.#received.slice(parsed.length);
        return parsed.answer;
      }
      if (this.socket.destroyed) throw new Error(`the connection closed after: ${this.#received}`);
      await new Promise<void>((resolve) => {
        const done = () => {
          this.socket.off('data', done).off('close', done);
          resolve();
        };
        this.socket.on('data', done).on('close', done);
      });
    }
  }

  destroy(): void {
    this.socket.destroy();
  }
}

function parse(text: string): { answer: RawAnswer; length: number } | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = end + 4 + Number(headers['content-length'] ?? 0);
  if (text.length < length) return null;
  return {
    length,
    answer: {
      status: Number(first.split(' ')[1]),
      headers,
      contentType: headers['content-type'],
      requestId: headers['x-request-id'],
      body: text.slice(end + 4, length),
    },
  };
}

export function head(method: string, path: string, headers: Record<string, string | number>): string {
  const lines = Object.entries({ host: 'test', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
