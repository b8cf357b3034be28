import { ASYNCH_LIMITS, CHANNEL_MODES, INTERVAL_SECONDS } from '@undertone/contract';
import type { Progress } from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { addServerFlags, connect, parseUrl, serverUrl, waitForResult, writeStatus } from '../client.ts';
import { findRecordings } from '../files.ts';
import { interruptible } from '../interrupt.ts';
import { addOutputFlags } from '../output.ts';
import { modelFlag, wholeNumber } from '../settings-flags.ts';
import { addTimelineFlags, printTimeline } from '../timeline.ts';
import { planMany, uploadAll } from '../upload/many.ts';
import { send, type Upload, type UploadFlags, withResumeHint } from '../upload/send.ts';

const MORE = `
A recording is at least 5 seconds long and at most 1 GiB: WAV always, other
formats if the server has ffmpeg. \`-\` reads standard input. The key is read from
SERVICE_API_KEY. Without --wait the request ID is printed to standard output.
With --wait the timeline is, and the request ID goes to standard error. With
--channels separate each channel of a call is analysed separately and has its
own strip.

Ctrl-C keeps what was sent: --resume continues the upload of the same file
within 24 hours, even after a crash. After Ctrl-C during the wait the server
finishes the request.

A folder means all recordings in it and in its subfolders: one progress bar, and
a table at the end. Without --wait each line has a request ID and a file. --csv
and --jsonl print all timelines. With --output they go to a file, which gets its
name when all is done. --resume adds to such a file, also after Ctrl-C, and
skips what it already has. The exit code is 3 if some files failed; a wrong key
or a missing server stops all of them.

Examples:
  undertone upload talk.wav --wait
  undertone upload call.wav --channels separate --wait
  undertone upload talk.wav --model 7emotions --interval 10 --csv > talk.csv
  undertone upload calls/ --output calls.csv --resume
  id=$(undertone upload talk.wav) && undertone result "$id" --wait`;

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
    .option('--label <text>', 'your name for it in `undertone list`, up to 100 characters', parseLabel)
    .option('--webhook <url>', 'an https address to notify when the result is ready', parseUrl);
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (paths: string[], flags: UploadFlags) => {
      const { files, isFolder } = await findRecordings(paths);
      const [file] = files;
      const isOne = !isFolder && files.length === 1 && file !== undefined && !flags.jsonl && !flags.output;
      const upload = { flags, url: serverUrl(command) };
      if (isOne) {
        const client = connect(command);
        return interruptible((signal) => uploadOne({ ...upload, client, signal }, file));
      }
      const output = await planMany(flags, files);
      const client = connect(command, { showProgress: false });
      return interruptible((signal) => uploadAll({ ...upload, client, signal }, files, output));
    });
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

function parseLabel(text: string): string {
  const max = ASYNCH_LIMITS.maxLabelLength;
  if (text !== '' && [...text].length <= max) return text;
  throw new InvalidArgumentError(`Use 1 to ${max} characters.`);
}
