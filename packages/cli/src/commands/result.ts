import { CLIENT_LIMITS } from '@undertone/contract';
import { type AsynchResult, type EmotionClient, PredictionTimeoutError } from '@undertone/sdk';
import type { Command } from 'commander';
import { type AsynchFlags, asynchClient, asynchUrlFlag, interruptible, POLL_MS } from '../asynch-client.ts';
import { Failure } from '../failure.ts';
import { addTimelineFlags, printTimeline, type TimelineFlags } from '../timeline/print.ts';

const MORE = `
Without --wait, a result that is not there yet is exit code 1 and says how far it has come. Everything about a request is gone
24 hours after it was made.

Examples:
  undertone result 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10
  undertone result 0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10 --wait --srt > talk.srt`;

interface Flags extends AsynchFlags, TimelineFlags {
  readonly wait?: true;
}

export function addResult(program: Command): void {
  const result = program
    .command('result')
    .summary('show the time line of an uploaded recording')
    .description('Shows the time line of a recording that was uploaded before.')
    .argument('<id>', 'the identifier that `undertone upload` printed')
    .option('--wait', 'wait until the time line is there');
  addTimelineFlags(result)
    .addOption(asynchUrlFlag())
    .addHelpText('after', MORE)
    .action(async (id: string, flags: Flags) => {
      const client = asynchClient(flags);
      const ask = flags.wait ? waitFor : askOnce;
      printTimeline(await interruptible((signal) => ask(client, id, signal)), flags);
    });
}

async function askOnce(client: EmotionClient, id: string, signal: AbortSignal): Promise<AsynchResult> {
  try {
    return await client.asynch.emotions(id, { maxTries: 1, signal });
  } catch (error) {
    if (!(error instanceof PredictionTimeoutError)) throw error;
    throw new Failure(`${error.message} --wait waits for it.`);
  }
}

/** The tries of one call are limited; the patience of whoever said --wait is not. */
async function waitFor(client: EmotionClient, id: string, signal: AbortSignal): Promise<AsynchResult> {
  const options = { maxTries: CLIENT_LIMITS.maxTries.max, interval: POLL_MS, signal };
  for (;;) {
    try {
      return await client.asynch.emotions(id, options);
    } catch (error) {
      if (!(error instanceof PredictionTimeoutError)) throw error;
    }
  }
}
