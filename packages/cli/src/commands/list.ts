import { LIST_LIMIT, REQUEST_STATES, type RequestState } from '@undertone/contract';
import type { RequestSummary } from '@undertone/sdk';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { printable } from '../batch.ts';
import { addServerFlags, connect } from '../client.ts';

const MORE = `
Newest first: the requests of the key in SERVICE_API_KEY. --json prints one JSON object with requests and next_cursor, which
--cursor takes for the next page.

Examples:
  undertone list
  undertone list --status processing
  undertone list --json | jq -r '.requests[] | select(.status == "completed").request_id'`;

interface Flags {
  readonly status?: RequestState;
  readonly limit: number;
  readonly cursor?: string;
  readonly json?: true;
}

export function addList(program: Command): void {
  const command = program
    .command('list')
    .summary('list the long recordings on the server')
    .description('Lists the long recordings of this key that the server has.')
    .addOption(new Option('--status <status>', 'only those in this status').choices([...REQUEST_STATES]))
    .addOption(
      new Option('--limit <count>', 'how many at most').argParser(parseLimit).default(LIST_LIMIT.default),
    )
    .option('--cursor <cursor>', 'the next page')
    .option('--json', 'as JSON');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async ({ json, ...page }: Flags) => {
      const list = await connect(command).asynch.list({
        status: page.status,
        limit: page.limit,
        cursor: page.cursor,
      });
      if (json) {
        process.stdout.write(`${JSON.stringify(list)}\n`);
        return;
      }
      if (list.requests.length === 0) process.stderr.write('There are no requests.\n');
      else process.stdout.write(`${table(list.requests).join('\n')}\n`);
      if (list.next_cursor !== null) {
        process.stderr.write(`There are more: add --cursor ${list.next_cursor}\n`);
      }
    });
}

function table(requests: readonly RequestSummary[]): string[] {
  const rows = [['ID', 'STATUS', 'LENGTH', 'CREATED', 'LABEL'], ...requests.map(row)];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function row({
  request_id,
  label,
  status,
  progress,
  duration_seconds,
  created_at,
}: RequestSummary): string[] {
  const state = status === 'processing' ? `${status} ${Math.floor(progress * 100)} %` : status;
  const length = duration_seconds === null ? '' : clock(duration_seconds);
  const created = created_at.replace('T', ' ').slice(0, 16);
  return [request_id, state, length, created, printable(label ?? '')];
}

function clock(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(seconds / 60)}:${two(seconds % 60)}`;
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= LIST_LIMIT.min && limit <= LIST_LIMIT.max) return limit;
  throw new InvalidArgumentError(`Give a whole number from ${LIST_LIMIT.min} to ${LIST_LIMIT.max}.`);
}
