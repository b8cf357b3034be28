import { basename } from 'node:path';
import {
  CHANNEL_MODES,
  type ChannelMode,
  INTERVAL_SECONDS,
  labelOf,
  type ModelId,
  timedSteps,
  timelineTable,
} from '@undertone/contract';
import {
  type EmotionClient,
  InvalidRequestIdError,
  type Progress,
  UploadFailedError,
  type UploadOptions,
} from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { Batch } from '../batch.ts';
import { addServerFlags, connect, interruptible, serverUrl, waitForResult, writeStatus } from '../client.ts';
import { findRecordings } from '../files.ts';
import { addOutputFlags, Output, type OutputFlags } from '../output.ts';
import { modelFlag, wholeNumber } from '../settings-flags.ts';
import { addTimelineFlags, printTimeline, sharesOf, type TimelineFlags } from '../timeline.ts';
import { recordName, UploadRecords } from '../upload-records.ts';
import { explain, UserError } from '../user-error.ts';

const MORE = `
A recording is at least 5 seconds long and at most 1 GiB: WAV always, other formats if the server has ffmpeg. \`-\` reads standard
input. The key is read from SERVICE_API_KEY. Without --wait the request ID is printed to standard output. With --wait the timeline
is, and the request ID goes to standard error. With --channels separate each channel of a call is analysed separately and has its
own strip.

Ctrl-C keeps what was sent: --resume continues the upload of the same file within 24 hours, even after a crash. After Ctrl-C during
the wait the server finishes the request.

A folder means all recordings in it and in its subfolders: one progress bar, and a table at the end. Without --wait each line has a
request ID and a file. --csv and --jsonl print all timelines. With --output they go to a file, and --resume skips the files that it
already has. The exit code is 3 if some files failed.

Examples:
  undertone upload talk.wav --wait
  undertone upload call.wav --channels separate --wait
  undertone upload talk.wav --model 7emotions --interval 10 --csv > talk.csv
  undertone upload calls/ --output calls.csv --resume
  id=$(undertone upload talk.wav) && undertone result "$id" --wait`;

/** Concurrent recordings of one command. */
const CONCURRENCY = 3;

/** Small parts, because parts in flight are sent again after an interruption. */
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
    .description('Sends long recordings to the server, and shows their timelines with --wait.')
    .argument('<path...>', 'recordings of at least 5 seconds, or folders of them')
    .option(
      '--wait',
      'wait for the timeline and print it; --json, --jsonl, --csv, --srt and --output imply it',
    );
  addTimelineFlags(command).addOption(
    new Option('--jsonl', 'one JSON object per line, for many files').conflicts(['json', 'csv', 'srt']),
  );
  addOutputFlags(command)
    .addOption(modelFlag())
    .addOption(
      new Option('--interval <seconds>', 'seconds between classifications')
        .argParser(wholeNumber(INTERVAL_SECONDS.min, INTERVAL_SECONDS.max))
        .default(INTERVAL_SECONDS.default),
    )
    .addOption(
      new Option('--channels <how>', 'mix all channels, or analyse each one separately')
        .choices([...CHANNEL_MODES])
        .default(CHANNEL_MODES[0]),
    )
    .option('--label <text>', 'your name for it in `undertone list`, up to 100 characters')
    .option('--webhook <url>', 'an https address to notify when the result is ready');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (paths: string[], flags: Flags) => {
      const { files, isFolder } = await findRecordings(paths);
      const [file] = files;
      const isOne = !isFolder && files.length === 1 && file !== undefined && !flags.jsonl && !flags.output;
      const upload = { flags, url: serverUrl(command) };
      await interruptible((signal) =>
        isOne
          ? uploadOne({ ...upload, client: connect(command), signal }, file)
          : uploadAll({ ...upload, client: connect(command, { showProgress: false }), signal }, files),
      );
    });
}

/** What every upload of one command shares. */
interface Upload {
  readonly client: EmotionClient;
  readonly url: string;
  readonly flags: Flags;
  readonly signal: AbortSignal;
}

async function uploadOne(upload: Upload, file: string): Promise<void> {
  const { client, flags, signal } = upload;
  const waits = flags.wait || flags.json || flags.csv || flags.srt || flags.details;
  let announced = !waits;
  let sent: Progress | undefined;
  // Printed as early as possible, so that a user who loses the terminal can still get the result.
  const onProgress = (progress: Progress) => {
    sent = progress;
    if (announced || progress.requestId === undefined) return;
    announced = true;
    writeStatus(''); // The progress bar is on this line, and is drawn again on the next one.
    process.stderr.write(`Request ID: ${progress.requestId}\n`);
  };
  let requestId: string;
  try {
    requestId = await send(upload, file, onProgress);
  } catch (error) {
    throw withResumeHint(error, file, sent, signal);
  }
  if (waits) printTimeline(await waitForResult(client, requestId, signal), flags);
  else process.stdout.write(`${requestId}\n`);
}

async function uploadAll(upload: Upload, files: readonly string[]): Promise<void> {
  const { flags, signal } = upload;
  if (flags.json || flags.srt) {
    throw new UserError('--json and --srt are for one recording. Use --jsonl or --csv for many.');
  }
  if (files.includes('-')) throw new UserError('Standard input cannot be combined with other recordings.');
  const output = await Output.open(flags);
  const waits = flags.wait || output !== undefined;
  const left = files.filter((file) => !output?.done.has(file));
  const batch = new Batch(waits ? 'Uploading and classifying' : 'Uploading', left.length);
  const waiting = left.values();
  const work = async () => {
    for (const file of waiting) {
      if (signal.aborted) return;
      try {
        batch.succeed(file, await uploadOneOfMany(upload, file, batch, { output, waits }));
      } catch (error) {
        if (signal.aborted) return;
        if (output) await output.write({ file, error: { detail: explain(error) } }, [], []);
        batch.fail(file, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, left.length) }, work));
  batch.end(output?.isStdout || !waits ? process.stderr : process.stdout, 'step', files.length - left.length);
  if (signal.aborted) throw new UserError('Stopped. Continue with the same command and --resume.');
}

/** Returns the labels of the steps; none without --wait. */
async function uploadOneOfMany(
  upload: Upload,
  file: string,
  batch: Batch,
  { output, waits }: { readonly output: Output | undefined; readonly waits: boolean },
): Promise<string[]> {
  // With --wait the upload is the first half of the work.
  const onProgress = ({ status, progress }: Progress) =>
    batch.progress(file, waits ? (status === 'uploading' ? progress / 2 : 0.5 + progress / 2) : progress);
  const requestId = await send(upload, file, onProgress);
  if (!waits) {
    batch.print(process.stdout, `${requestId}\t${file}`);
    return [];
  }
  const result = await waitForResult(upload.client, requestId, upload.signal, onProgress);
  const steps = timedSteps(result);
  if (output) {
    const [header = [], ...rows] = timelineTable(steps);
    await output.write(
      { file, ...result },
      ['file', 'request_id', ...header],
      rows.map((row) => [file, requestId, ...row]),
    );
  } else {
    batch.print(process.stdout, `${file}  ${sharesOf(steps).join(', ')}`);
  }
  return steps.map(labelOf);
}

/** Sends a file, or with --resume its missing parts, and records the request ID for a later --resume. */
async function send(
  { client, url, flags, signal }: Upload,
  file: string,
  onProgress: (progress: Progress) => void,
): Promise<string> {
  const { model, interval: intervalSeconds, channels, label, webhook: webhookUrl } = flags;
  const recording = { model, intervalSeconds, channels, label, webhookUrl };
  const options: UploadOptions = { ...recording, partSize: PART_SIZE, onProgress, signal };
  if (file === '-') return client.asynch.upload(process.stdin, options);
  const records = new UploadRecords();
  // If the file cannot be read, the client's error is better than one about a checksum.
  const name = await recordName(file, [url, model, intervalSeconds, channels]).catch(() => undefined);
  let kept: string | undefined;
  const remember = (progress: Progress) => {
    const { requestId } = progress;
    onProgress(progress);
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

/** Adds how to continue an interrupted upload. */
function withResumeHint(
  error: unknown,
  file: string,
  sent: Progress | undefined,
  signal: AbortSignal,
): unknown {
  const isTemporary =
    error instanceof UploadFailedError && (error.status === undefined || error.status >= 429);
  if (sent?.requestId === undefined || !(signal.aborted || isTemporary)) return error;
  const lines = [
    signal.aborted ? `Stopped at ${Math.floor(sent.progress * 100)} %.` : explain(error),
    // Standard input cannot be read again.
    ...(file === '-' ? [] : ['Continue within 24 hours: the same command with --resume.']),
    `Delete what was sent: \`undertone delete ${sent.requestId}\`.`,
  ];
  return new UserError(lines.join('\n'));
}
