/** A recording that can be read from any place, as often as needed. */
export interface RecordingSource {
  /** In bytes. */
  readonly size: number;
  /** The bytes from `start` up to, not including, `end`; the whole recording when neither is given. */
  read(start?: number, end?: number): AsyncIterable<Uint8Array>;
}

export function memorySource(bytes: Uint8Array): RecordingSource {
  return {
    size: bytes.length,
    async *read(start = 0, end = bytes.length) {
      yield bytes.subarray(start, end);
    },
  };
}
