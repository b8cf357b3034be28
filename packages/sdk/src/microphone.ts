import { ConfigError } from './errors.ts';
import type { Microphone, MicrophoneOptions } from './types.ts';

/** Buffer while a stream reconnects; later audio is dropped. */
const MAX_BUFFERED_SECONDS = 10;
const SAMPLE_BYTES = 2;

/**
 * The AudioWorklet: posts 16-bit samples of one channel ten times a second. If the content security policy of a page
 * forbids `blob:` scripts, serve this text as a file and pass its URL as `workletUrl`.
 */
export const MICROPHONE_WORKLET = `
const PIECES_PER_SECOND = 10;
class Microphone extends AudioWorkletProcessor {
  samples = new Int16Array(Math.ceil(sampleRate / PIECES_PER_SECOND));
  count = 0;
  process([[channel = []]]) {
    for (const sample of channel) {
      this.samples[this.count++] = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
      if (this.count < this.samples.length) continue;
      this.port.postMessage(this.samples.slice().buffer);
      this.count = 0;
    }
    return true;
  }
}
registerProcessor('undertone-microphone', Microphone);
`;

// The parts of the browser's types used here: this file is type-checked without the DOM library.
interface Track {
  stop(): void;
  addEventListener(event: 'ended', listener: () => void): void;
}
interface MediaStreamLike {
  getTracks(): Track[];
}
interface NodeLike {
  connect(node: NodeLike): void;
  readonly port: { onmessage: ((event: { data: ArrayBuffer }) => void) | null };
}
interface ContextLike {
  readonly sampleRate: number;
  readonly audioWorklet: { addModule(url: string): Promise<void> };
  createMediaStreamSource(stream: MediaStreamLike): { connect(node: NodeLike): void };
  resume(): Promise<void>;
  close(): Promise<void>;
}
interface Page {
  readonly navigator?: {
    readonly mediaDevices?: { getUserMedia(wanted: object): Promise<MediaStreamLike> };
  };
  readonly AudioContext?: new () => ContextLike;
  readonly AudioWorkletNode?: new (context: ContextLike, name: string, options: object) => NodeLike;
}

/** Opens the microphone for `client.stream`. The browser asks the user for permission. */
export async function fromMicrophone(options: MicrophoneOptions = {}): Promise<Microphone> {
  const { navigator, AudioContext, AudioWorkletNode } = globalThis as unknown as Page;
  if (!navigator?.mediaDevices || !AudioContext || !AudioWorkletNode) {
    throw new ConfigError(['No microphone: use a browser and a page from https or localhost.']);
  }
  const { constraints = {}, mediaStream, workletUrl } = options;
  const media =
    (mediaStream as MediaStreamLike | undefined) ??
    (await navigator.mediaDevices.getUserMedia({ audio: constraints }));
  const context = new AudioContext();
  try {
    await addWorklet(context, workletUrl);
    const node = new AudioWorkletNode(context, 'undertone-microphone', {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: 'explicit',
    });
    context.createMediaStreamSource(media).connect(node);
    await context.resume();
    return capture(
      node,
      context,
      () => {
        // The caller stops its own media stream.
        if (mediaStream === undefined) for (const track of media.getTracks()) track.stop();
        void context.close();
      },
      media,
    );
  } catch (error) {
    await context.close();
    throw error;
  }
}

function capture(
  node: NodeLike,
  { sampleRate }: ContextLike,
  release: () => void,
  media: MediaStreamLike,
): Microphone {
  let stop = () => {};
  const readable = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        let stopped = false;
        stop = () => {
          if (stopped) return;
          stopped = true;
          node.port.onmessage = null;
          release();
          controller.close();
        };
        node.port.onmessage = ({ data }) => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(new Uint8Array(data));
        };
      },
      cancel: () => {
        node.port.onmessage = null;
        release();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_BUFFERED_SECONDS * sampleRate * SAMPLE_BYTES }),
  );
  for (const track of media.getTracks()) track.addEventListener('ended', () => stop());
  return { format: { sampleRate, encoding: 'pcm_s16le', channels: 1 }, readable, stop: () => stop() };
}

async function addWorklet(context: ContextLike, workletUrl: string | undefined): Promise<void> {
  if (workletUrl !== undefined) return context.audioWorklet.addModule(workletUrl);
  const url = URL.createObjectURL(new Blob([MICROPHONE_WORKLET], { type: 'text/javascript' }));
  try {
    await context.audioWorklet.addModule(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}
