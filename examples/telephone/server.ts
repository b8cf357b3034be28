// The emotions of a telephone call: live, and of the whole call once it is over. README.md beside this file explains it.
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { EmotionClient, type EmotionStream, webhooks } from '@undertone/sdk';
import { type WebSocket, WebSocketServer } from 'ws';
import { CallRecording, type Track } from './call-recording.ts';

/** The messages of Twilio Media Streams. A `media` frame has 20 ms of mu-law samples in base64. */
type Frame =
  | { event: 'connected' | 'stop' | 'mark' | 'dtmf' }
  | { event: 'start'; start: { callSid: string } }
  | { event: 'media'; media: { track: Track; timestamp: string; payload: string } };

const TELEPHONE = { sampleRate: 8_000, encoding: 'mulaw' } as const;
const { PORT = '8081', PUBLIC_URL = '', RESULTS = 'calls' } = process.env;

const client = new EmotionClient();
const secret = await client.asynch.webhookSecret();
const server = createServer(async (request, response) => {
  const status = await receiveWebhook(request).catch((error: Error) => {
    console.error(error.message);
    return 500; // not 2xx, so that the webhook is sent again later
  });
  response.writeHead(status).end();
});
new WebSocketServer({ server }).on('connection', handleCall);
server.listen(Number(PORT), () => console.log(`Waiting for calls on port ${Object(server.address()).port}.`));

function handleCall(socket: WebSocket): void {
  const streams = new Map<Track, EmotionStream>();
  const recording = new CallRecording();
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
    const { track, timestamp, payload } = frame.media;
    const samples = Buffer.from(payload, 'base64');
    recording.add(track, Number(timestamp), samples);
    if (!streams.has(track)) {
      const stream = client.stream(TELEPHONE);
      streams.set(track, stream);
      void report(call, track, stream);
    }
    inTurn(() => streams.get(track)?.write(samples));
  });
  socket.on('close', () => {
    for (const stream of streams.values()) inTurn(() => stream.end());
    inTurn(() => submit(call, recording));
  });
}

/** Prints one line of JSON per prediction. Replace this with your application's own handling. */
async function report(call: string, track: Track, stream: EmotionStream): Promise<void> {
  try {
    for await (const { t, main_emotion, confidence } of stream) {
      // Below 0.38 there is no speech or no clear emotion.
      if (confidence >= 0.38) console.log(JSON.stringify({ call, track, t, main_emotion, confidence }));
    }
  } catch (error) {
    console.error(`${call}, ${track}: ${(error as Error).message}`);
  }
}

/** Sends the finished call as a long recording. The server answers with a webhook when the result is ready. */
async function submit(call: string, recording: CallRecording): Promise<void> {
  if (recording.seconds < 5) return;
  const webhookUrl = `${PUBLIC_URL || `http://127.0.0.1:${Object(server.address()).port}`}/webhook`;
  await client.asynch.submit(recording.toWav(), { channels: 'separate', label: call, webhookUrl });
}

/** Stores the result, because the server erases it after 24 hours. Returns the status to answer with. */
async function receiveWebhook(request: IncomingMessage): Promise<number> {
  if (request.method !== 'POST' || request.url !== '/webhook') return 404;
  const event = await webhooks.verify(await buffer(request), request.headers, secret);
  const { request_id, label, status } = event.data;
  if (status === 'completed') {
    const file = join(RESULTS, `${String(label).replaceAll(/\W/g, '')}.json`);
    const result = await client.asynch.emotions(request_id);
    await mkdir(RESULTS, { recursive: true });
    await writeFile(file, JSON.stringify(result, null, 2));
    console.log(JSON.stringify({ call: label, status, file }));
  } else {
    console.log(JSON.stringify({ call: label, status }));
  }
  return 204;
}
