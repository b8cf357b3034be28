/**
 * What a recording is, told by its first bytes: names and content types are often wrong.
 * The list need not be complete, only good enough for clear messages: ffmpeg looks for itself.
 */
const signatures: ReadonlyArray<readonly [name: string, at: number, bytes: string]> = [
  ['flac', 0, 'fLaC'],
  ['ogg', 0, 'OggS'],
  ['mp3', 0, 'ID3'],
  ['mp4', 4, 'ftyp'],
  ['webm', 0, '\x1a\x45\xdf\xa3'],
  ['amr', 0, '#!AMR'],
  ['caf', 0, 'caff'],
  ['au', 0, '.snd'],
  ['aiff', 8, 'AIFF'],
  ['aiff', 8, 'AIFC'],
  ['wma', 0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11'],
  ['w64', 0, 'riff\x2e\x91\xcf\x11'],
  ['flv', 0, 'FLV\x01'],
];

export const SNIFF_BYTES = 12;

export function sniff(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, SNIFF_BYTES));
  if (/^(RIFF|RF64|BW64)/.test(start) && start.startsWith('WAVE', 8)) return 'wav';
  for (const [name, at, signature] of signatures) {
    if (start.startsWith(signature, at)) return name;
  }
  // MPEG frames start with eleven set bits; the layer bits tell AAC (00) from MP3.
  const [first, second] = bytes;
  if (first === 0xff && second !== undefined && (second & 0xe0) === 0xe0) {
    return (second & 0x06) === 0 ? 'aac' : 'mp3';
  }
  return 'unknown';
}
