import { DEFAULT_MODEL, INTERVAL_SECONDS, MODEL_IDS, type ModelId } from '@undertone/contract';
import type { AsynchResult, EmotionClient, UploadOptions } from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type AsynchFlags, asynchClient, asynchUrlFlag, interruptible, POLL_MS } from '../asynch-client.ts';
import { Failure } from '../failure.ts';
import { addTimelineFlags, printTimeline, type TimelineFlags } from '../timeline/print.ts';

const MORE = `
A recording is 5 seconds to 1 GiB: WAV always, other formats where the server has ffmpeg. \`-\` reads standard input. The key is
read from SERVICE_API_KEY. Without --wait the identifier of the request goes to standard output, alone; with it the time line.
Ctrl-C while sending deletes what was sent; while waiting it leaves the request to the server.

Examples:
  undertone upload talk.wav --wait
  undertone upload talk.wav --model 7emotions --interval 10 --csv > talk.csv
  id=$(undertone upload talk.wav) && undertone result "$id" --wait`;

interface Flags extends AsynchFlags, TimelineFlags {
  readonly model: ModelId;
  readonly interval: number;
  readonly wait?: true;
}

export function addUpload(program: Command): void {
  const upload = program
    .command('upload')
    .summary('send a long recording to the service')
    .description('Sends a long recording to the service, and with --wait shows its time line.')
    .argument('<file>', 'a recording of at least 5 seconds')
    .option('--wait', 'wait for the time line and print it; the forms below imply it');
  addTimelineFlags(upload)
    .addOption(
      new Option('--model <model>', 'which emotions to tell apart')
        .choices([...MODEL_IDS])
        .default(DEFAULT_MODEL),
    )
    .addOption(
      new Option('--interval <seconds>', 'seconds between two classifications')
        .argParser(parseInterval)
        .default(INTERVAL_SECONDS.default),
    )
    .addOption(asynchUrlFlag())
    .addHelpText('after', MORE)
    .action(async (file: string, flags: Flags) => {
      const client = asynchClient(flags);
      const recording = file === '-' ? process.stdin : file;
      const options = { model: flags.model, intervalSeconds: flags.interval };
      if (flags.wait || flags.json || flags.csv || flags.srt) {
        printTimeline(await uploadAndWait(client, recording, options), flags);
      } else {
        const requestId = await interruptible((signal) =>
          client.asynch.upload(recording, { ...options, signal }),
        );
        process.stdout.write(`${requestId}\n`);
      }
    });
}

async function uploadAndWait(
  client: EmotionClient,
  recording: string | NodeJS.ReadStream,
  options: UploadOptions,
): Promise<AsynchResult> {
  let waitingFor: string | undefined;
  const onProgress: UploadOptions['onProgress'] = ({ status, requestId }) => {
    if (status !== 'uploading') waitingFor = requestId;
  };
  return interruptible(async (signal) => {
    try {
      return await client.asynch.classify(recording, { ...options, interval: POLL_MS, onProgress, signal });
    } catch (error) {
      if (!signal.aborted || waitingFor === undefined) throw error;
      throw new Failure(`Stopped waiting. The request goes on: \`undertone result ${waitingFor} --wait\`.`);
    }
  });
}

function parseInterval(text: string): number {
  const { min, max } = INTERVAL_SECONDS;
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= min && seconds <= max) return seconds;
  throw new InvalidArgumentError(`Give a whole number of seconds from ${min} to ${max}.`);
}
