/** An open microphone. Pieces are a tenth of a second, mono, each sample from -1 to 1. */
export interface Microphone {
  readonly sampleRate: number;
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

export async function openMicrophone(onPiece: (samples: Float32Array) => void): Promise<Microphone> {
  if (!navigator.mediaDevices) throw new Error(NO_MICROPHONE);
  const media = await navigator.mediaDevices.getUserMedia({ audio: true }).catch((error: Error) => {
    throw new Error(REASONS[error.name] ?? `The microphone cannot be used: ${error.message}`);
  });
  const context = new AudioContext();
  await context.audioWorklet.addModule('/page/microphone-worklet.js');
  const gatherer = new AudioWorkletNode(context, 'gatherer', { numberOfOutputs: 0 });
  gatherer.port.onmessage = ({ data }) => onPiece(data);
  context.createMediaStreamSource(media).connect(gatherer);
  return {
    sampleRate: context.sampleRate,
    pause: () => context.suspend(),
    resume: () => context.resume(),
    close: async () => {
      for (const track of media.getTracks()) track.stop();
      await context.close();
    },
  };
}

export const NO_MICROPHONE =
  'Browsers give the microphone only to pages over https, and to pages of this very machine (http://127.0.0.1 or ' +
  'http://localhost). Open this page over https, or record a file and drop it here.';

const REASONS: Record<string, string> = {
  NotAllowedError: 'This page may not use the microphone. Allow it in the address bar, then try again.',
  NotFoundError: 'This machine has no microphone. Connect one, then try again.',
  NotReadableError: 'Another program is using the microphone. Close it, then try again.',
};
