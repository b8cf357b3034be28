import { basename } from 'node:path';
import { CHANNEL_MODES, type ChannelMode, INTERVAL_SECONDS, type ModelId } from '@undertone/contract';
import {
  type AsynchResult,
  InvalidRequestIdError,
  type Progress,
  UploadFailedError,
  type UploadOptions,
} from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { Batch } from '../batch.ts';
import { addServerFlags, connect, interruptible, serverUrl, waitForResult, writeStatus } from '../client.ts';
import { findRecordings } from '../files.ts';
import { addOutputFlags, Output, type OutputFlags } from '../output.ts';
import { modelFlag } from '../settings-flags.ts';
import {
  addTimelineFlags,
  csvHeader,
  csvRows,
  labelOf,
  printTimeline,
  stepsOf,
  type TimelineFlags,
} from '../timeline.ts';
import { recordName, UploadRecords } from '../upload-records.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
A recording is 5 seconds to 1 GiB: WAV always, other formats where the server has ffmpeg. \`-\` reads standard input. The key is
read from SERVICE_API_KEY. Without --wait the request ID goes to standard output, alone. With it the timeline does, and the
request ID goes to standard error. With --channels separate each channel of a call is heard apart and has a strip of its own.

Ctrl-C keeps what was sent: --resume continues an upload of the same file within 24 hours, however it was interrupted. During the
wait the request continues by itself.

A folder stands for all recordings in it and in the folders below it: one bar for the whole, and a table in the end. Without --wait
a line has the request ID and the file. --csv and --jsonl print all timelines; with --output they go to a file, and --resume then
skips the files that are in it. When some of the files could not be done the exit code is 3.

Examples:
  undertone upload talk.wav --wait
  undertone upload call.wav --channels separate --wait
  undertone upload talk.wav --model 7emotions --interval 10 --csv > talk.csv
  undertone upload calls/ --output calls.csv --resume
  id=$(undertone upload talk.wav) && undertone result "$id" --wait`;

/** Recordings that are sent or waited for at the same time. */
const AT_ONCE = 3;

/** Parts that are in flight when an upload is killed are sent again: small ones make that little. */
const PART_SIZE = 2 * 1024 * 1024;

interface Flags extends TimelineFlags, Omit<OutputFlags, 'csv'> {
  readonly model: ModelId;
  readonly interval: number;
  readonly channels: ChannelMode;
  readonly label?: string;
  readonly webhook?: string;
  readonly wait?: true;
}

export function addUpload(program: Command): void {
  const command = program
    .command('upload')
    .summary('send long recordings to the server')
    .description('Sends long recordings to the server, and with --wait shows their timelines.')
    .argument('<path...>', 'recordings of at least 5 seconds, or folders of them')
    .option(
      '--wait',
      'wait for the timeline and print it; --json, --jsonl, --csv, --srt and --output imply it',
    );
  addTimelineFlags(command).addOption(
    new Option('--jsonl', 'one JSON object a line, for many files').conflicts(['json', 'csv', 'srt']),
  );
  addOutputFlags(command)
    .addOption(modelFlag())
    .addOption(
      new Option('--interval <seconds>', 'seconds between two classifications')
        .argParser(parseInterval)
        .default(INTERVAL_SECONDS.default),
    )
    .addOption(
      new Option('--channels <how>', 'hear all channels as one voice, or each apart')
        .choices([...CHANNEL_MODES])
        .default(CHANNEL_MODES[0]),
    )
    .option('--label <text>', 'your own name for it in `undertone list`, up to 100 characters')
    .option('--webhook <url>', 'an https address to tell when the result is there');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (paths: string[], flags: Flags) => {
      const { files, isFolder } = await findRecordings(paths);
      const [file] = files;
      const isOne = !isFolder && files.length === 1 && file !== undefined && !flags.jsonl && !flags.output;
      await interruptible((signal) =>
        isOne ? uploadOne(command, file, flags, signal) : uploadAll(command, files, flags, signal),
      );
    });
}

async function uploadOne(command: Command, file: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const waits = flags.wait || flags.json || flags.csv || flags.srt || flags.details;
  let announced = !waits;
  let sent: Progress | undefined;
  // As soon as it is known: whoever loses the terminal can still ask for the result.
  const onProgress = (progress: Progress) => {
    sent = progress;
    if (announced || progress.requestId === undefined) return;
    announced = true;
    writeStatus(''); // The bar of the upload is on this line, and is drawn again on the next.
    process.stderr.write(`Request ID: ${progress.requestId}\n`);
  };
  let requestId: string;
  try {
    requestId = await send(command, file, flags, { onProgress, signal });
  } catch (error) {
    throw withWayOn(error, file, sent, signal);
  }
  if (waits) printTimeline(await waitForResult(command, requestId, signal), flags);
  else process.stdout.write(`${requestId}\n`);
}

async function uploadAll(
  command: Command,
  files: readonly string[],
  flags: Flags,
  signal: AbortSignal,
): Promise<void> {
  if (flags.json || flags.srt) {
    throw new UserError('--json and --srt are for one recording. For many there are --jsonl and --csv.');
  }
  if (files.includes('-')) throw new UserError('Standard input is one recording: name it alone.');
  const output = await Output.open(flags);
  const waits = flags.wait || output !== undefined;
  const left = files.filter((file) => !output?.done.has(file));
  const batch = new Batch(waits ? 'Uploading and classifying' : 'Uploading', left.length);
  const waiting = left.values();
  const work = async () => {
    for (const file of waiting) {
      if (signal.aborted) return;
      try {
        const labels = await uploadOneOfMany(command, file, flags, { batch, output, waits, signal });
        batch.succeed(file, labels);
      } catch (error) {
        if (signal.aborted) return;
        if (output) await output.write({ file, error: { detail: explain(error) } }, [], []);
        batch.fail(file, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, work));
  batch.end(
    output?.isStdout || !waits ? process.stderr : process.stdout,
    'steps',
    files.length - left.length,
  );
  if (signal.aborted) throw new UserError('Stopped. Continue with the same command and --resume.');
}

interface OneOfMany {
  readonly batch: Batch;
  readonly output: Output | undefined;
  readonly waits: boolean;
  readonly signal: AbortSignal;
}

/** What was heard in its steps; nothing when nobody waits for it. */
async function uploadOneOfMany(
  command: Command,
  file: string,
  flags: Flags,
  { batch, output, waits, signal }: OneOfMany,
): Promise<string[]> {
  // Half of the way is the upload, where there is more to come.
  const onProgress = ({ status, progress }: Progress) =>
    batch.progress(file, waits ? (status === 'uploading' ? progress / 2 : 0.5 + progress / 2) : progress);
  const requestId = await send(command, file, flags, { onProgress, signal }, false);
  if (!waits) {
    batch.print(process.stdout, `${requestId}\t${file}`);
    return [];
  }
  const result = await waitForResult(command, requestId, signal, onProgress);
  const steps = stepsOf(result);
  if (output) {
    const rows = csvRows(steps).map((row) => [file, requestId, ...row]);
    await output.write({ file, ...result }, ['file', 'request_id', ...csvHeader(steps)], rows);
  } else {
    batch.print(process.stdout, fileLine(file, result));
  }
  return steps.map(labelOf);
}

function fileLine(file: string, result: AsynchResult): string {
  const steps = stepsOf(result);
  const shares = [...Map.groupBy(steps, labelOf)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([label, own]) => `${label} ${Math.round((own.length / steps.length) * 100)} %`);
  return `${file}  ${shares.join(', ')}`;
}

/** Sends a file, or what is missing of it, and remembers the request until the server forgets it. */
async function send(
  command: Command,
  file: string,
  flags: Flags,
  { onProgress, signal }: Required<Pick<UploadOptions, 'onProgress' | 'signal'>>,
  showProgress = true,
): Promise<string> {
  const { model, interval: intervalSeconds, channels, label, webhook: webhookUrl } = flags;
  const recording = { model, intervalSeconds, channels, label, webhookUrl };
  const options: UploadOptions = { ...recording, partSize: PART_SIZE, onProgress, signal };
  const client = connect(command, { showProgress });
  if (file === '-') return client.asynch.upload(process.stdin, options);
  const records = new UploadRecords();
  const settings = [serverUrl(command), model, intervalSeconds, channels];
  // A file that cannot be read is explained by the client, better than by a checksum.
  const name = await recordName(file, settings).catch(() => undefined);
  let kept: string | undefined;
  const remember = (progress: Progress) => {
    const { requestId } = progress;
    onProgress?.(progress);
    if (requestId === undefined || requestId === kept || name === undefined) return;
    kept = requestId;
    records.keep(name, requestId).catch((error: Error) => {
      process.stderr.write(`undertone: --resume will not find this upload: ${error.message}\n`);
    });
  };
  const resume = flags.resume && name ? await records.find(name) : undefined;
  if (resume !== undefined) {
    try {
      return await client.asynch.upload(file, { ...options, onProgress: remember, resume });
    } catch (error) {
      if (!(error instanceof InvalidRequestIdError)) throw error;
      process.stderr.write(`The interrupted upload of ${basename(file)} has expired. Starting again.\n`);
    }
  }
  return client.asynch.upload(file, { ...options, onProgress: remember });
}

/** How to continue an upload that was interrupted. */
function withWayOn(error: unknown, file: string, sent: Progress | undefined, signal: AbortSignal): unknown {
  const isLater = error instanceof UploadFailedError && (error.status === undefined || error.status >= 429);
  if (sent?.requestId === undefined || !(signal.aborted || isLater)) return error;
  const lines = [
    signal.aborted ? `Stopped at ${Math.floor(sent.progress * 100)} %.` : explain(error),
    // What came through a pipe is gone.
    ...(file === '-' ? [] : ['Continue within 24 hours: the same command with --resume.']),
    `Delete what was sent: \`undertone delete ${sent.requestId}\`.`,
  ];
  return new UserError(lines.join('\n'));
}

function parseInterval(text: string): number {
  const { min, max } = INTERVAL_SECONDS;
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= min && seconds <= max) return seconds;
  throw new InvalidArgumentError(`Give a whole number of seconds from ${min} to ${max}.`);
}
