import { createReadStream } from 'node:fs';
import {
  formatTimestamp,
  hasSpeech,
  labelOf,
  type ModelId,
  NO_SPEECH,
  SAMPLE_RATE,
  STREAM_ENCODINGS,
  STREAM_LIMITS,
} from '@undertone/contract';
import type { EmotionStream, StreamPrediction } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { addServerFlags, connect, writeStatus } from '../client.ts';
import { explainReading, refuseAddress } from '../files.ts';
import { interruptible } from '../interrupt.ts';
import { inRealTime, type LiveAudio, openLiveAudio, type RawFlags } from '../live-audio.ts';
import { modelFlag, wholeNumber } from '../settings-flags.ts';
import { row, sign } from '../timeline.ts';
import { UserError } from '../user-error.ts';

const MORE = `
A file is sent at the speed of speech. \`-\`, or no argument, reads standard input
as it arrives. WAV files describe their own format; for raw samples give --rate,
--encoding or --channels. The key is read from SERVICE_API_KEY. Each interval
prints a row for the last 5 seconds to standard output; on a terminal a status
line shows the elapsed time. Ctrl-C stops and prints the final result.

Examples:
  undertone listen talk.wav
  arecord -q -f S16_LE -r 16000 | undertone listen -
  arecord -q -t raw -f S16_LE -r 16000 | undertone listen - --rate 16000
  ffmpeg -v error -i call.mp3 -f wav -c:a pcm_s16le - | undertone listen --json`;

interface Flags extends RawFlags {
  readonly model: ModelId;
  readonly interval: number;
  readonly json?: boolean;
}

const DEFAULT_COLUMNS = 80;

export function addListen(program: Command): void {
  const { min, max, default: interval } = STREAM_LIMITS.intervalSeconds;
  const command = program
    .command('listen')
    .summary('classify a recording or a microphone live')
    .description('Streams a recording, or standard input, to the server as live audio.')
    .argument('[file]', 'a WAV file, raw samples, or - for standard input', '-')
    .addOption(modelFlag())
    .addOption(
      new Option('--interval <seconds>', 'seconds between answers')
        .argParser(wholeNumber(min, max))
        .default(interval),
    )
    .addOption(
      new Option('--rate <hertz>', 'sample rate of raw samples').argParser(
        wholeNumber(SAMPLE_RATE.min, SAMPLE_RATE.max),
      ),
    )
    .addOption(new Option('--encoding <encoding>', 'encoding of raw samples').choices([...STREAM_ENCODINGS]))
    .addOption(
      new Option('--channels <count>', 'channels of raw samples, each analysed separately').argParser(
        wholeNumber(1, STREAM_LIMITS.maxChannels),
      ),
    )
    .option('--json', 'one JSON object per line instead of bars');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (file: string, { model, interval, json = false, rate, encoding, channels }: Flags) => {
      if (file === '-' && process.stdin.isTTY) {
        throw new UserError(
          'There is no input. Name a file, or pipe audio in: `arecord -q -f S16_LE -r 16000 | undertone listen -`.',
        );
      }
      refuseAddress(file);
      const client = connect(command);
      const input = file === '-' ? process.stdin : createReadStream(file);
      const raw = { ...(rate && { rate }), ...(encoding && { encoding }), ...(channels && { channels }) };
      try {
        const audio = await openLiveAudio(input, raw);
        const stream = client.stream({ ...audio.format, model, interval });
        const live = new LiveLine();
        await interruptible(async (signal) => {
          signal.addEventListener('abort', () => void stream.end());
          // Once the stream has ended, the rest of the input is not needed.
          const shown = show(stream, audio, json, live).finally(() => input.destroy());
          await Promise.all([play(audio, stream, file !== '-', live), shown]);
        });
      } catch (error) {
        throw explainReading(error, `${file}: `);
      } finally {
        writeStatus('');
        input.destroy();
      }
    });
}

/** Sends the audio until the input or the stream ends. */
async function play(audio: LiveAudio, stream: EmotionStream, paced: boolean, live: LiveLine): Promise<void> {
  let written = 0;
  try {
    for await (const chunk of paced ? inRealTime(audio) : audio.chunks) {
      await stream.write(chunk);
      written += chunk.length;
      live.at(written / audio.bytesPerSecond);
    }
    await stream.end();
  } catch (error) {
    if (stream.ended) return; // After Ctrl-C, or an error that the reading side throws.
    stream.close();
    throw error;
  }
}

async function show(
  stream: EmotionStream,
  { format }: LiveAudio,
  json: boolean,
  live: LiveLine,
): Promise<void> {
  for await (const prediction of stream) {
    const { t, channel, confidence } = prediction;
    const side = format.channels > 1 ? `${channel === 0 ? 'left ' : 'right'} ` : '';
    writeStatus('');
    const emotion = hasSpeech(prediction) ? prediction.main_emotion : NO_SPEECH;
    const line = row({ name: t.padStart(6), emotion, confidence });
    process.stdout.write(`${json ? JSON.stringify(prediction) : side + line}\n`);
    live.add(prediction);
  }
}

/** The status line: elapsed time, and all emotions so far as a strip. */
class LiveLine {
  #seconds = 0;
  readonly #cells: string[] = [];

  at(seconds: number): void {
    if (Math.floor(seconds) === Math.floor(this.#seconds) && this.#seconds > 0) return;
    this.#seconds = seconds;
    this.#draw();
  }

  add(prediction: StreamPrediction): void {
    this.#cells.push(sign(labelOf({ ...prediction, emotion: prediction.main_emotion })));
    this.#draw();
  }

  #draw(): void {
    const time = formatTimestamp(this.#seconds).padStart(6);
    const width = (process.stderr.columns ?? DEFAULT_COLUMNS) - time.length - 3;
    writeStatus(`${time}  ${this.#cells.slice(-width).join('') || 'listening'}`);
  }
}
