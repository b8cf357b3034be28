import { toCsv, toSrt } from '@undertone/contract';
import { download } from './download.ts';
import { type Scene, toPng } from './draw.ts';
import type { Recording } from './entry.ts';
import { readPalette } from './palette.ts';
import type { Result } from './result.ts';

interface Props {
  readonly name: string;
  readonly title: string;
  readonly result: Result;
  readonly scene: Scene;
  readonly recording?: Recording | undefined;
  readonly onError: (error: unknown) => void;
}

/** Saves a result in every format. */
export function Exports({ name, title, result, scene, recording, onError }: Props) {
  const base = name.replace(/\.\w{1,5}$/, '');
  const json = () => `${JSON.stringify(result.answer, null, 2)}\n`;
  const formats: Record<string, () => void> = {
    CSV: () => download(`${base}.csv`, toCsv(result.steps), 'text/csv'),
    JSON: () => download(`${base}.json`, json(), 'application/json'),
    SRT: () => download(`${base}.srt`, toSrt(result.steps), 'application/x-subrip'),
    PNG: () => {
      toPng(scene, title, readPalette(document.body)).then((blob) => download(`${base}.png`, blob), onError);
    },
  };
  if (result.from === 'stream' && recording)
    formats['WAV'] = () => download(recording.file.name, recording.file);
  return (
    <>
      {Object.entries(formats).map(([format, save]) => (
        <button key={format} type="button" onClick={save}>
          {format}
        </button>
      ))}
    </>
  );
}
