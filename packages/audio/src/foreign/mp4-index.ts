/**
 * Phones write the index of an MP4 file (the `moov` box) after the sound, and a reader that cannot
 * seek, such as ffmpeg on a pipe, is lost then. Here the index moves to the front, in memory.
 */
interface Box {
  readonly type: string;
  readonly start: number;
  readonly body: number;
  readonly end: number;
}

/** Enough to see which of index and sound comes first: only small boxes stand before them. */
export const INDEX_PROBE_BYTES = 4096;

export function soundComesBeforeIndex(start: Uint8Array): boolean {
  for (const box of boxes(start, 0, Number.MAX_SAFE_INTEGER)) {
    if (box.type === 'moov') return false;
    if (box.type === 'mdat') return true;
  }
  return false;
}

/** The file with its index moved to just after the first box, or unchanged where that cannot be. */
export function moveIndexToFront(file: Uint8Array): Uint8Array {
  const top = [...boxes(file, 0, file.length)];
  const first = top[0];
  const index = top.find((box) => box.type === 'moov');
  if (first?.type !== 'ftyp' || index === undefined || index === top[1]) return file;

  const moved = file.slice(index.start, index.end);
  shiftOffsets(moved, { from: first.end, to: index.start, by: moved.length });
  return Buffer.concat([
    file.subarray(0, first.end),
    moved,
    file.subarray(first.end, index.start),
    file.subarray(index.end),
  ]);
}

interface Shift {
  from: number;
  to: number;
  by: number;
}

const CONTAINERS = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl']);
const DEEPEST = 8;

/** The index says where each piece of sound lies in the file: those that moved are corrected. */
function shiftOffsets(index: Uint8Array, shift: Shift): void {
  const view = new DataView(index.buffer, index.byteOffset, index.length);
  const walk = (start: number, end: number, depth: number): void => {
    for (const box of boxes(index, start, end)) {
      if (CONTAINERS.has(box.type) && depth < DEEPEST) walk(box.body, box.end, depth + 1);
      if (box.type === 'stco' || box.type === 'co64') shiftTable(view, box, shift);
    }
  };
  walk(0, index.length, 0);
}

function shiftTable(view: DataView, box: Box, { from, to, by }: Shift): void {
  if (box.end - box.body < 8) return;
  const entryBytes = box.type === 'stco' ? 4 : 8;
  const room = Math.floor((box.end - box.body - 8) / entryBytes);
  const count = Math.min(view.getUint32(box.body + 4), room);
  for (let entry = 0; entry < count; entry++) {
    const at = box.body + 8 + entry * entryBytes;
    const offset = entryBytes === 4 ? view.getUint32(at) : Number(view.getBigUint64(at));
    if (offset < from || offset >= to) continue;
    if (entryBytes === 4) view.setUint32(at, offset + by);
    else view.setBigUint64(at, BigInt(offset + by));
  }
}

function* boxes(bytes: Uint8Array, start: number, end: number): Generator<Box> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = start;
  while (at + 8 <= Math.min(end, bytes.length)) {
    let size = view.getUint32(at);
    let body = at + 8;
    if (size === 1) {
      if (at + 16 > bytes.length) return;
      size = Number(view.getBigUint64(at + 8));
      body = at + 16;
    }
    const boxEnd = size === 0 ? end : at + size;
    if (boxEnd < body || boxEnd > end) return;
    yield { type: String.fromCharCode(...bytes.subarray(at + 4, at + 8)), start: at, body, end: boxEnd };
    at = boxEnd;
  }
}
