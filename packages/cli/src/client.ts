import { DEFAULT_PORT, type ModelId } from '@undertone/contract';
import {
  type AsynchResult,
  ConfigError,
  EmotionClient,
  type ProgressListener,
  UndertoneError,
} from '@undertone/sdk';
import { readSettings } from '@undertone/server/settings';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError, UserError } from './user-error.ts';

const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Errors that every further call would meet too. */
const LASTING = ['connection_failed', 'redirected', 'invalid_answer'];

export function addServerFlags(command: Command, description = 'address of the server'): Command {
  const fallback = `(default: http://127.0.0.1:${DEFAULT_PORT}, or the port in SERVICE_PORT)`;
  return command.addOption(
    new Option('--url <url>', `${description} ${fallback}`)
      .env('SERVICE_URL')
      // An empty variable counts as not set.
      .argParser((text) => (text === '' ? undefined : parseUrl(text))),
  );
}

/** For commands that work on this machine unless --server, or --url on the command line, names a server. */
export function addServerChoice(command: Command, what: string): Command {
  command.option('--server', `${what} the server at --url instead of this machine`);
  return addServerFlags(command, 'address of that server; implies --server');
}

export function usesServer(command: Command): boolean {
  return command.getOptionValue('server') === true || command.getOptionValueSource('url') === 'cli';
}

/** Refuses flags of this machine that a server would ignore. */
export function refuseLocalFlags(command: Command, names: readonly string[]): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (!names.includes(name) || command.getOptionValueSource(name) !== 'cli') continue;
    throw new UsageError(`${option.long} is for this machine. The server has settings of its own.`);
  }
}

interface Connection {
  readonly showProgress?: boolean;
  /** The environment variable that names another address for this command. */
  readonly overriddenBy?: 'SERVICE_ASYNCH_URL' | 'SERVICE_DISCRETE_URL';
}

/** A client for the server that the flags name. The key comes from the environment, which other users cannot read. */
export function connect(
  command: Command,
  { showProgress = true, overriddenBy: variable = 'SERVICE_ASYNCH_URL' }: Connection = {},
): EmotionClient {
  if (!process.env['SERVICE_API_KEY']) {
    throw new UserError(
      'No API key: set SERVICE_API_KEY. Run `undertone keys create` on the server to create a key.',
    );
  }
  const other = process.env[variable];
  if (other && command.getOptionValueSource('url') === 'cli') {
    process.stderr.write(`undertone: ${variable} overrides --url: using ${other}.\n`);
  }
  const client = new EmotionClient({ baseUrl: serverUrl(command), showProgress });
  client.validateConfig();
  return client;
}

/** The address of the server that the flags name. */
export function serverUrl(command: Command): string {
  return command.opts<{ url?: string }>().url || `http://127.0.0.1:${localPort()}`;
}

/** A shell that has SERVICE_PORT set for its server uses the same port for the client. */
function localPort(): number {
  const { SERVICE_PORT } = process.env;
  return readSettings({ SERVICE_PORT }).port || DEFAULT_PORT;
}

/** Tries the address, the key and the model before a command that takes many files starts. */
export async function checkServer(client: EmotionClient, model: ModelId): Promise<void> {
  const ids = (await client.models()).models.map(({ id }) => id);
  if (ids.includes(model)) return;
  throw new UserError(`The server has no model "${model}". Choose from ${ids.join(', ')} with --model.`);
}

/** True if all other files would fail in the same way: a wrong key, or no server. */
export function stopsAll(error: unknown): boolean {
  if (error instanceof ConfigError) return true;
  return error instanceof UndertoneError && (error.status === 401 || LASTING.includes(error.code ?? ''));
}

/** Waits for a result. After Ctrl-C it says how to get it later. */
export async function waitForResult(
  client: EmotionClient,
  requestId: string,
  signal: AbortSignal,
  onProgress?: ProgressListener,
): Promise<AsynchResult> {
  try {
    return await client.asynch.wait(requestId, { onProgress, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new UserError(`Stopped waiting. The request continues: \`undertone result ${requestId} --wait\`.`);
  }
}

/** Overwrites the status line, if there is a terminal. */
export function writeStatus(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}

export function parseRequestId(text: string): string {
  if (REQUEST_ID.test(text)) return text;
  throw new InvalidArgumentError('Use the request ID that `undertone upload` printed.');
}

export function parseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('Use a full address that begins with http:// or https://.');
}
