import type { AsynchResult } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { asCsv, asJson, asSrt } from './formats.ts';
import { drawTimeline } from './strip.ts';

const NARROW = 80;

export interface TimelineFlags {
  readonly json?: true;
  readonly csv?: true;
  readonly srt?: true;
}

export function addTimelineFlags(command: Command): Command {
  const forms = {
    json: 'the result as one JSON object',
    csv: 'the time line as CSV',
    srt: 'the time line as subtitles',
  };
  for (const [name, description] of Object.entries(forms)) {
    const others = Object.keys(forms).filter((other) => other !== name);
    command.addOption(new Option(`--${name}`, description).conflicts(others));
  }
  return command;
}

/** The result goes to standard output, alone; bars and remarks go to standard error. */
export function printTimeline(result: AsynchResult, { json, csv, srt }: TimelineFlags): void {
  process.stdout.write(`${formatted()}\n`);

  function formatted(): string {
    if (json) return asJson(result);
    if (csv) return asCsv(result);
    if (srt) return asSrt(result);
    return drawTimeline(result, process.stdout.columns ?? NARROW);
  }
}
