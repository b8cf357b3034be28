import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATHS } from '@undertone/contract';
import { head, RawClient } from '@undertone/testing/socket';

const FRAME_BYTES = 4 * 1024 * 1024;

/** Opens connections that never show a key: silent ones, and ones that begin a large frame of a WebSocket. */
export class WithoutKey {
  readonly #port: number;
  readonly #clients: RawClient[] = [];

  constructor(url: string) {
    this.#port = Number(new URL(url).port);
  }

  async connect(count: number): Promise<void> {
    for (let i = 0; i < count; i++) this.#clients.push(new RawClient(this.#port));
    await Promise.all(this.#clients.map(({ socket }) => socket.connecting && once(socket, 'connect')));
  }

  /** Half of them to `/v1/stream`, half to Socket.IO, which accepts a connection before it has a key. */
  async sendUnfinishedFrames(count: number): Promise<void> {
    const upgrade = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': 13,
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const paths = [PATHS.stream, `${PATHS.socketIo}?EIO=4&transport=websocket`];
    // Text, not the last frame of its message, masked, with a length of 64 bits.
    const frame = Buffer.alloc(14 + FRAME_BYTES, 'x');
    frame.writeUInt16BE(0x01ff, 0);
    frame.writeBigUInt64BE(BigInt(FRAME_BYTES + 1), 2);
    for (let i = 0; i < count; i++) {
      const client = new RawClient(this.#port);
      this.#clients.push(client);
      client.send(head('GET', paths[i % 2] ?? '', upgrade)).send(frame);
    }
    await sleep(5_000);
  }

  close(): void {
    for (const client of this.#clients) client.destroy();
  }
}
