import { API_KEY_HEADER, type ModelList, PATHS, type Problem } from '@undertone/contract';
import { error, type Finding, ok, warning } from './store-checks.ts';

const TIMEOUT_MS = 5_000;
const KEY_FIX = 'Create a key with `undertone keys create` on the server, and set SERVICE_API_KEY to it.';
const URL_FIX = 'Check --url or SERVICE_URL, and that the server is running.';

export interface ServerSettings {
  readonly host: string;
  readonly port: number;
  /** The address that --url or SERVICE_URL names. */
  readonly url?: string | undefined;
  readonly apiKey?: string | undefined;
}

/** Tries the address and the key as a client would. Null if neither is set, or no server runs here. */
export async function checkServer({ host, port, url, apiKey }: ServerSettings): Promise<Finding | null> {
  if (url === undefined && !apiKey) return null;
  const address = (url ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`).replace(/\/+$/, '');
  let response: Response;
  try {
    response = await fetch(address + PATHS.models, {
      headers: apiKey ? { [API_KEY_HEADER]: apiKey } : {},
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (cause) {
    // The key may be meant for the server that is not started yet.
    return url === undefined ? null : error(`${address} cannot be reached: ${reasonOf(cause)}`, URL_FIX);
  }
  const answer = await response.json().catch(() => undefined);
  if (response.ok && Array.isArray((answer as ModelList | undefined)?.models)) {
    const { version, weights } = answer as ModelList;
    return ok(`${address} accepts the key in SERVICE_API_KEY; ${weights.id} weights ${version}`);
  }
  const { code, detail = '' } = (answer ?? {}) as Partial<Problem>;
  if (code === 'missing_api_key') return warning(`${address} runs; SERVICE_API_KEY is not set`, KEY_FIX);
  if (code !== undefined) return error(`${address} refuses the key in SERVICE_API_KEY: ${detail}`, KEY_FIX);
  return error(`${address} answers with status ${response.status}, but is not Undertone`, URL_FIX);
}

function reasonOf(cause: unknown): string {
  const { cause: deeper, message } = cause as Error;
  return ((deeper as Error | undefined)?.message || message).split('\n', 1)[0] ?? '';
}
