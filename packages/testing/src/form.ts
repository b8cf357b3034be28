export interface Part {
  name: string;
  fileName?: string;
  type?: string;
  content: Buffer | string;
}

export const BOUNDARY = 'undertone-test-boundary';
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

export function form(...parts: Part[]): Buffer {
  const pieces = parts.flatMap(({ name, fileName, type, content }) => [
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"`,
    fileName === undefined ? '' : `; filename="${fileName}"`,
    type === undefined ? '\r\n\r\n' : `\r\nContent-Type: ${type}\r\n\r\n`,
    content,
    '\r\n',
  ]);
  return Buffer.concat([...pieces, `--${BOUNDARY}--\r\n`].map((piece) => Buffer.from(piece)));
}

export function fileForm(content: Buffer | string): Buffer {
  return form({ name: 'file', fileName: 'voice.wav', type: 'audio/wav', content });
}
