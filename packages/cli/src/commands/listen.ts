import { createReadStream } from 'node:fs';
import {
  formatTimestamp,
  MIN_SPEECH_SECONDS,
  type ModelId,
  SAMPLE_RATE,
  STREAM_ENCODINGS,
  STREAM_LIMITS,
} from '@undertone/contract';
import type { EmotionStream, StreamPrediction } from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { addServerFlags, connect, writeStatus } from '../client.ts';
import { inRealTime, type LiveAudio, openLiveAudio, type RawFlags } from '../live-audio.ts';
import { modelFlag } from '../settings-flags.ts';
import { labelOf, row, sign } from '../timeline.ts';
import { UserError } from '../user-error.ts';
import { NO_SPEECH } from '../words.ts';

const MORE = `
A file is played at the speed of speech; \`-\`, or nothing, is standard input, heard as it comes. WAV says itself what it is; for
raw samples give --rate, --encoding or --channels. The key is read from SERVICE_API_KEY. There is a row for the last 5 seconds
at every interval, on standard output; on a terminal a line below them goes with the time. Ctrl-C ends it, with what is left.

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
    .summary('hear a recording or a microphone live')
    .description('Plays a recording, or standard input, through the server as live audio.')
    .argument('[file]', 'a WAV file, raw samples, or - for standard input', '-')
    .addOption(modelFlag())
    .addOption(
      new Option('--interval <seconds>', 'seconds between two answers')
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
      new Option('--channels <count>', 'channels of raw samples, each heard apart').argParser(
        wholeNumber(1, STREAM_LIMITS.maxChannels),
      ),
    )
    .option('--json', 'one JSON object a line instead of bars');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (file: string, { model, interval, json = false, rate, encoding, channels }: Flags) => {
      if (file === '-' && process.stdin.isTTY) {
        throw new UserError(
          'Nothing is piped in. Name a file, or: `arecord -q -f S16_LE -r 16000 | undertone listen -`.',
        );
      }
      const client = connect(command);
      const input = file === '-' ? process.stdin : createReadStream(file);
      const raw = { ...(rate && { rate }), ...(encoding && { encoding }), ...(channels && { channels }) };
      try {
        const audio = await openLiveAudio(input, raw);
        const stream = client.stream({ ...audio.format, model, interval });
        process.once('SIGINT', () => void stream.end());
        const live = new LiveLine();
        // When the stream has ended, nobody needs the rest of the input.
        const shown = show(stream, audio, json, live).finally(() => input.destroy());
        await Promise.all([play(audio, stream, file !== '-', live), shown]);
      } catch (error) {
        throw explainReading(error, file);
      } finally {
        writeStatus('');
        input.destroy();
      }
    });
}

/** Until there is no more, or nobody listens any more. */
async function play(audio: LiveAudio, stream: EmotionStream, paced: boolean, live: LiveLine): Promise<void> {
  let written = 0;
  try {
    for await (const piece of paced ? inRealTime(audio) : audio.pieces) {
      await stream.write(piece);
      written += piece.length;
      live.at(written / audio.bytesPerSecond);
    }
    await stream.end();
  } catch (error) {
    if (stream.ended) return; // Ctrl-C, or the reason is told where it is read.
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
    const who = format.channels > 1 ? `${channel === 0 ? 'left ' : 'right'} ` : '';
    writeStatus('');
    const line = row({ name: t.padStart(6), channel: undefined, heard: heardIn(prediction), confidence });
    process.stdout.write(`${json ? JSON.stringify(prediction) : who + line}\n`);
    live.heard(prediction);
  }
}

function heardIn({ main_emotion, speech_seconds }: StreamPrediction) {
  return speech_seconds < MIN_SPEECH_SECONDS ? NO_SPEECH : main_emotion;
}

/** The time, and every emotion so far as a strip. */
class LiveLine {
  #seconds = 0;
  readonly #cells: string[] = [];

  at(seconds: number): void {
    if (Math.floor(seconds) === Math.floor(this.#seconds) && this.#seconds > 0) return;
    this.#seconds = seconds;
    this.#draw();
  }

  heard(prediction: StreamPrediction): void {
    this.#cells.push(sign(labelOf({ heard: heardIn(prediction), confidence: prediction.confidence })));
    this.#draw();
  }

  #draw(): void {
    const time = formatTimestamp(this.#seconds).padStart(6);
    const room = (process.stderr.columns ?? DEFAULT_COLUMNS) - time.length - 3;
    writeStatus(`${time}  ${this.#cells.slice(-room).join('') || 'listening'}`);
  }
}

function explainReading(error: unknown, file: string): unknown {
  const reasons: Record<string, string> = {
    ENOENT: 'There is no such file.',
    EISDIR: 'This is a folder.',
    EACCES: 'You may not read this file.',
  };
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason === undefined ? error : new UserError(`${file}: ${reason}`);
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
  };
}
