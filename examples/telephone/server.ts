// Emotions of a telephone call while it goes on. Twilio's Media Streams, and services that speak like them, connect here:
// every 20 ms a frame of mu-law samples at 8 kHz, in base64. Each side of the call is a stream of its own.
//
//   SERVICE_API_KEY=... PORT=8081 node examples/telephone/server.ts
//
// In Twilio: <Connect><Stream url="wss://your-host/" track="both_tracks"/></Connect>
import { EmotionClient, type EmotionStream } from '@undertone/sdk';
import { type WebSocket, WebSocketServer } from 'ws';

type Frame =
  | { event: 'connected' | 'stop' | 'mark' | 'dtmf' }
  | { event: 'start'; start: { callSid: string } }
  | { event: 'media'; media: { track: 'inbound' | 'outbound'; payload: string } };

const TELEPHONE = { sampleRate: 8_000, encoding: 'mulaw' } as const;

const client = new EmotionClient();
const server = new WebSocketServer({ port: Number(process.env['PORT'] ?? 8081) });
server.on('connection', hearCall);
server.on('listening', () => console.log(`Waiting for calls on port ${Object(server.address()).port}.`));

function hearCall(socket: WebSocket): void {
  const tracks = new Map<string, EmotionStream>();
  let call = '';

  // `write` waits for its turn, so that a side that is held up is heard in order.
  let writing: Promise<unknown> = Promise.resolve();
  const inTurn = (work: () => Promise<unknown> | undefined) => {
    writing = writing.then(work).catch((error: Error) => console.error(`${call}: ${error.message}`));
  };

  socket.on('message', (text) => {
    const frame = JSON.parse(String(text)) as Frame;
    if (frame.event === 'start') call = frame.start.callSid;
    if (frame.event === 'stop') socket.close();
    if (frame.event !== 'media') return;
    const { track, payload } = frame.media;
    if (!tracks.has(track)) {
      const stream = client.stream(TELEPHONE);
      tracks.set(track, stream);
      void tell(call, track, stream);
    }
    inTurn(() => tracks.get(track)?.write(Buffer.from(payload, 'base64')));
  });
  socket.on('close', () => {
    for (const stream of tracks.values()) inTurn(() => stream.end());
  });
}

/** One line of JSON for each answer: put here what your application does with it. */
async function tell(call: string, track: string, stream: EmotionStream): Promise<void> {
  try {
    for await (const { t, main_emotion, confidence } of stream) {
      // Under 0.38 nobody spoke, or no emotion stands out.
      if (confidence >= 0.38) console.log(JSON.stringify({ call, track, t, main_emotion, confidence }));
    }
  } catch (error) {
    console.error(`${call}, ${track}: ${(error as Error).message}`);
  }
}
