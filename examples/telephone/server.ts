// Live emotions of a telephone call. Twilio Media Streams and compatible services connect here and send a frame of mu-law samples
// (8 kHz, base64) every 20 ms. Each side of the call is a separate stream.
//
//   SERVICE_API_KEY=... PORT=8081 npx node examples/telephone/server.ts
//
// In Twilio: <Start><Stream url="wss://your-host/" track="both_tracks"/></Start>
import { EmotionClient, type EmotionStream } from '@undertone/sdk';
import { type WebSocket, WebSocketServer } from 'ws';

type Frame =
  | { event: 'connected' | 'stop' | 'mark' | 'dtmf' }
  | { event: 'start'; start: { callSid: string } }
  | { event: 'media'; media: { track: 'inbound' | 'outbound'; payload: string } };

const TELEPHONE = { sampleRate: 8_000, encoding: 'mulaw' } as const;

const client = new EmotionClient();
const server = new WebSocketServer({ port: Number(process.env['PORT'] ?? 8081) });
server.on('connection', handleCall);
server.on('listening', () => console.log(`Waiting for calls on port ${Object(server.address()).port}.`));

function handleCall(socket: WebSocket): void {
  const tracks = new Map<string, EmotionStream>();
  let call = '';

  // Writes run one after another, so that samples stay in order under backpressure.
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
      void report(call, track, stream);
    }
    inTurn(() => tracks.get(track)?.write(Buffer.from(payload, 'base64')));
  });
  socket.on('close', () => {
    for (const stream of tracks.values()) inTurn(() => stream.end());
  });
}

/** Prints one line of JSON per prediction. Replace this with your application's own handling. */
async function report(call: string, track: string, stream: EmotionStream): Promise<void> {
  try {
    for await (const { t, main_emotion, confidence } of stream) {
      // Below 0.38 there is no speech or no clear emotion.
      if (confidence >= 0.38) console.log(JSON.stringify({ call, track, t, main_emotion, confidence }));
    }
  } catch (error) {
    console.error(`${call}, ${track}: ${(error as Error).message}`);
  }
}
