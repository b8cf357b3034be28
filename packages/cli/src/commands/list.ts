import { formatTimestamp, LIST_LIMIT, REQUEST_STATES, type RequestState } from '@undertone/contract';
import type { EmotionClient, ListOptions, RequestList, RequestSummary } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { alignColumns } from '../bars.ts';
import { printable } from '../batch.ts';
import { addServerFlags, connect } from '../client.ts';
import { wholeNumber } from '../settings-flags.ts';

const MORE = `
Lists the requests of the key in SERVICE_API_KEY, newest first. --json prints
one JSON object with requests and next_cursor; pass that to --cursor for the
next page, or get all pages with --all.

Examples:
  undertone list
  undertone list --status processing
  undertone list --all --status completed --json |
    jq -r '.requests[].request_id'`;

const HEADER = ['ID', 'STATUS', 'LENGTH', 'CREATED', 'LABEL'];

interface Flags {
  readonly status?: RequestState;
  readonly limit: number;
  readonly all?: true;
  readonly cursor?: string;
  readonly json?: true;
}

export function addList(program: Command): void {
  const command = program
    .command('list')
    .summary('list the long recordings on the server')
    .description('Lists the long recordings of this key on the server.')
    .addOption(new Option('--status <status>', 'only requests with this status').choices([...REQUEST_STATES]))
    .addOption(
      new Option('--limit <count>', 'maximum number of requests')
        .argParser(wholeNumber(LIST_LIMIT.min, LIST_LIMIT.max))
        .default(LIST_LIMIT.default),
    )
    .addOption(new Option('--all', 'all requests, page by page').conflicts('limit'))
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--json', 'as JSON');
  addServerFlags(command)
    .addHelpText('after', MORE)
    .action(async ({ json, all, ...page }: Flags) => {
      const client = connect(command);
      const list = all ? await listAll(client, page) : await client.asynch.list(onePage(page));
      if (json) {
        process.stdout.write(`${JSON.stringify(list)}\n`);
        return;
      }
      if (list.requests.length === 0) process.stderr.write('There are no requests.\n');
      else process.stdout.write(alignColumns([HEADER, ...list.requests.map(row)]));
      if (list.next_cursor !== null) {
        process.stderr.write(`There are more. Add --all, or --cursor ${list.next_cursor}\n`);
      }
    });
}

type Page = Pick<Flags, 'status' | 'limit' | 'cursor'>;

function onePage({ status, limit, cursor }: Page): ListOptions {
  return { status, limit, cursor };
}

async function listAll(client: EmotionClient, first: Page): Promise<RequestList> {
  const requests: RequestSummary[] = [];
  let { cursor } = first;
  for (;;) {
    const page = await client.asynch.list({ status: first.status, limit: LIST_LIMIT.max, cursor });
    requests.push(...page.requests);
    if (page.next_cursor === null) return { requests, next_cursor: null };
    cursor = page.next_cursor;
  }
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
  const length = duration_seconds === null ? '' : formatTimestamp(duration_seconds);
  const created = created_at.replace('T', ' ').slice(0, 16);
  return [request_id, state, length, created, printable(label ?? '')];
}
