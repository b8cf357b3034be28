// Runs on the browser's audio thread: gathers a tenth of a second of the first channel and hands it to the page.
declare const sampleRate: number;
declare const registerProcessor: (name: string, processor: unknown) => void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

class Gatherer extends AudioWorkletProcessor {
  #piece = new Float32Array(Math.round(sampleRate / 10));
  #filled = 0;

  process([input]: Float32Array[][]): boolean {
    for (const sample of input?.[0] ?? []) {
      this.#piece[this.#filled++] = sample;
      if (this.#filled < this.#piece.length) continue;
      this.port.postMessage(this.#piece, [this.#piece.buffer]);
      this.#piece = new Float32Array(this.#filled);
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor('gatherer', Gatherer);
