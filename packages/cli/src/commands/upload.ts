import { INTERVAL_SECONDS, type ModelId } from '@undertone/contract';
import type { Progress } from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { addServerFlags, connect, interruptible, waitForResult, writeStatus } from '../client.ts';
import { modelFlag } from '../settings-flags.ts';
import { addTimelineFlags, printTimeline, type TimelineFlags } from '../timeline.ts';

const MORE = `
A recording is 5 seconds to 1 GiB: WAV always, other formats where the server has ffmpeg. \`-\` reads standard input. The key is
read from SERVICE_API_KEY. Without --wait the request ID goes to standard output, alone. With it the timeline does, and the
request ID goes to standard error. Ctrl-C during the upload deletes what was sent; during the wait the request continues.

Examples:
  undertone upload talk.wav --wait
  undertone upload talk.wav --model 7emotions --interval 10 --csv > talk.csv
  id=$(undertone upload talk.wav) && undertone result "$id" --wait`;

interface Flags extends TimelineFlags {
  readonly model: ModelId;
  readonly interval: number;
  readonly wait?: true;
}

export function addUpload(program: Command): void {
  const command = program
    .command('upload')
    .summary('send a long recording to the server')
    .description('Sends a long recording to the server, and with --wait shows its timeline.')
    .argument('<file>', 'a recording of at least 5 seconds')
    .option('--wait', 'wait for the timeline and print it; --json, --csv and --srt imply it');
  addTimelineFlags(command)
    .addOption(modelFlag())
    .addOption(
      new Option('--interval <seconds>', 'seconds between two classifications')
        .argParser(parseInterval)
        .default(INTERVAL_SECONDS.default),
    );
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async (file: string, flags: Flags) => {
      const waits = flags.wait || flags.json || flags.csv || flags.srt;
      let announced = !waits;
      // As soon as it is known: whoever loses the terminal can still ask for the result.
      const onProgress = ({ requestId }: Progress) => {
        if (announced || requestId === undefined) return;
        announced = true;
        writeStatus(''); // The bar of the upload is on this line, and is drawn again on the next.
        process.stderr.write(`Request ID: ${requestId}\n`);
      };
      await interruptible(async (signal) => {
        const { model, interval: intervalSeconds } = flags;
        const options = { model, intervalSeconds, onProgress, signal };
        const requestId = await connect(command).asynch.upload(file === '-' ? process.stdin : file, options);
        if (waits) printTimeline(await waitForResult(command, requestId, signal), flags);
        else process.stdout.write(`${requestId}\n`);
      });
    });
}

function parseInterval(text: string): number {
  const { min, max } = INTERVAL_SECONDS;
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= min && seconds <= max) return seconds;
  throw new InvalidArgumentError(`Give a whole number of seconds from ${min} to ${max}.`);
}
