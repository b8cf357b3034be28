import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import type { HostileRequest } from './hostile.ts';
import { head, type RawAnswer, RawClient } from './socket.ts';

/** Sends a hostile request over its own connection. Disconnects if the body is shorter than its content-length. */
export async function sendHostile(
  port: number,
  key: string,
  request: HostileRequest,
): Promise<RawAnswer | null> {
  const { headers, body, announced, chunked = false, query } = request;
  const framing = chunked
    ? { 'transfer-encoding': 'chunked' }
    : { 'content-length': announced ?? body.length };
  const path = query === undefined ? PATHS.discrete : `${PATHS.discrete}?${query}`;
  const client = new RawClient(port);
  try {
    client.send(head('POST', path, { [API_KEY_HEADER]: key, ...headers, ...framing }));
    client.send(chunked ? asChunks(body) : body);
    const answer = client.answer();
    if (announced !== undefined && announced > body.length) {
      client.socket.end();
      // After a disconnect there may be an answer or none.
      return await answer.catch(() => null);
    }
    return await answer;
  } finally {
    client.destroy();
  }
}

function asChunks(body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += 1_000) {
    const piece = body.subarray(at, at + 1_000);
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}
