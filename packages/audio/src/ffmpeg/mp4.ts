import type { RecordingSource } from '../byte-reader.ts';
import { AudioError } from '../errors.ts';

/**
 * Phones write the index of an MP4 file (the `moov` box) after the sound; so do old QuickTime files, which have no `ftyp`
 * box. ffmpeg reads from a pipe and cannot seek, so
 * the index is read first and sent ahead of the sound.
 */
interface Box {
  readonly type: string;
  readonly start: number;
  readonly body: number;
  readonly end: number;
}

const MAX_INDEX_BYTES = 32 * 1024 * 1024;
/** Each costs one read. Files with more boxes are fragmented and start with their index. */
const MAX_TOP_BOXES = 64;
/** Boxes within the index; a track has some twenty. */
const MAX_INNER_BOXES = 4096;
const MAX_HEADER_BYTES = 16;

/** The file as a stream that ffmpeg can read without seeking; unchanged if there is nothing to move. */
export async function* streamableMp4(source: RecordingSource): AsyncGenerator<Uint8Array> {
  const boxes = await topBoxes(source);
  const index = boxes.at(-1);
  const soundComesFirst = boxes.some(({ type }) => type === 'mdat');
  if (index?.type !== 'moov' || !soundComesFirst) {
    yield* source.read();
    return;
  }
  const indexPlace = boxes.find(({ type }) => type === 'ftyp')?.end ?? 0;
  if (index.end - index.start > MAX_INDEX_BYTES) throw indexTooLarge();
  const moved = await readAll(source, index.start, index.end);
  shiftOffsets(moved, { from: indexPlace, to: index.start, by: moved.length });
  if (indexPlace > 0) yield* source.read(0, indexPlace);
  yield moved;
  yield* source.read(indexPlace, index.start);
  if (index.end < source.size) yield* source.read(index.end, source.size);
}

/** The top-level boxes up to the index or the first invalid one. */
async function topBoxes(source: RecordingSource): Promise<Box[]> {
  const found: Box[] = [];
  for (let at = 0; at < source.size && found.length < MAX_TOP_BOXES; ) {
    const header = await readAll(source, at, Math.min(at + MAX_HEADER_BYTES, source.size));
    const box = readBox(header, 0, source.size - at);
    if (box === null) break;
    found.push({ type: box.type, start: at, body: at + box.body, end: at + box.end });
    if (box.type === 'moov') break;
    at += box.end;
  }
  return found;
}

async function readAll(source: RecordingSource, start: number, end: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source.read(start, end)) pieces.push(piece);
  return Buffer.concat(pieces);
}

interface Shift {
  readonly from: number;
  readonly to: number;
  readonly by: number;
}

const CONTAINERS = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl']);
const MAX_DEPTH = 8;

/** The index has the file offset of each piece of sound. Corrects the offsets of those that move. */
function shiftOffsets(index: Buffer, shift: Shift): void {
  let seen = 0;
  const walk = (start: number, end: number, depth: number): void => {
    for (let box = readBox(index, start, end); box !== null; box = readBox(index, box.end, end)) {
      if (++seen > MAX_INNER_BOXES) throw indexTooLarge();
      if (CONTAINERS.has(box.type) && depth < MAX_DEPTH) walk(box.body, box.end, depth + 1);
      if (box.type === 'stco' || box.type === 'co64') shiftTable(index, box, shift);
    }
  };
  walk(0, index.length, 0);
}

function shiftTable(index: Buffer, box: Box, { from, to, by }: Shift): void {
  if (box.end - box.body < 8) return;
  const entryBytes = box.type === 'stco' ? 4 : 8;
  const room = Math.floor((box.end - box.body - 8) / entryBytes);
  const count = Math.min(index.readUInt32BE(box.body + 4), room);
  // Recordings are far smaller than 4 GiB, so the lower half of a 64-bit offset is enough.
  for (let entry = 0, at = box.body + 4 + entryBytes; entry < count; entry++, at += entryBytes) {
    const offset = index.readUInt32BE(at);
    const isLong = entryBytes === 8 && index.readUInt32BE(at - 4) !== 0;
    if (!isLong && offset >= from && offset < to) index.writeUInt32BE((offset + by) >>> 0, at);
  }
}

/** The box at `start`; null if there is none that ends by `end`. */
function readBox(bytes: Buffer, start: number, end: number): Box | null {
  if (start + 8 > Math.min(end, bytes.length)) return null;
  let size = bytes.readUInt32BE(start);
  let body = start + 8;
  if (size === 1) {
    if (start + MAX_HEADER_BYTES > bytes.length) return null;
    size = Number(bytes.readBigUInt64BE(start + 8));
    body = start + MAX_HEADER_BYTES;
  }
  const boxEnd = size === 0 ? end : start + size;
  if (boxEnd < body || boxEnd > end) return null;
  return { type: bytes.toString('latin1', start + 4, start + 8), start, body, end: boxEnd };
}

function indexTooLarge(): AudioError {
  return new AudioError(
    'unreadable_audio',
    'The index of this MP4 file is too large. Send the recording as WAV.',
  );
}
