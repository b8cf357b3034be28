import { type EmotionClient, PredictionTimeoutError } from '@undertone/sdk';
import type { Command } from 'commander';
import { addServerFlags, connect, parseRequestId, waitForResult } from '../client.ts';
import { interruptible } from '../interrupt.ts';
import { addTimelineFlags, printTimeline, type TimelineFlags } from '../timeline.ts';
import { UserError } from '../user-error.ts';

const MORE = `
Without --wait, the exit code is 1 if the result is not ready; the progress is
printed. Results are deleted 24 hours after the start of the upload.

Examples:
  undertone result 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10
  undertone result 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10 --wait --srt > talk.srt`;

interface Flags extends TimelineFlags {
  readonly wait?: true;
}

export function addResult(program: Command): void {
  const command = program
    .command('result')
    .summary('show the timeline of an uploaded recording')
    .description('Shows the timeline of an uploaded recording.')
    .argument('<id>', 'the request ID that `undertone upload` printed', parseRequestId)
    .option('--wait', 'wait until the timeline is ready');
  addServerFlags(addTimelineFlags(command))
    .addHelpText('after', MORE)
    .action(async (id: string, flags: Flags) => {
      const client = connect(command);
      const result = await interruptible((signal) =>
        flags.wait ? waitForResult(client, id, signal) : askOnce(client, id, signal),
      );
      printTimeline(result, flags);
    });
}

async function askOnce(client: EmotionClient, id: string, signal: AbortSignal) {
  try {
    return await client.asynch.emotions(id, { maxTries: 1, signal });
  } catch (error) {
    if (!(error instanceof PredictionTimeoutError)) throw error;
    throw new UserError(`${error.message} Add --wait to wait for it.`);
  }
}
