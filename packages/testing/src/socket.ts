import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  contentType: string | undefined;
  requestId: string | undefined;
  body: string;
}

/** A client that sends exactly the bytes it is told, when it is told. */
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
    // A reset is one of the ways a server may end a connection.
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  /** The next answer; waits until its whole body is there. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const parsed = parse(this.#received);
      if (parsed !== null) {
        this.#received = this.#received.slice(parsed.length);
        return parsed.answer;
      }
      if (this.socket.destroyed) throw new Error(`the connection closed after: ${this.#received}`);
      await new Promise((resolve) => {
        this.socket.once('data', resolve).once('close', resolve);
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
