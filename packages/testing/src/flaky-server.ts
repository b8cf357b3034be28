import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import { type Fault, type FaultPlan, type Route, type Seen, sendJson, sendProblem } from './faults.ts';

export const KEY = 'a-key-for-tests-0123456789';

interface Upload {
  readonly uploadId: string;
  readonly partCount: number;
  readonly query: URLSearchParams;
  readonly parts: Map<number, Buffer>;
  completed: boolean;
  polls: number;
}

/** A server with the documented API, over real sockets, that fails as a test plans. */
export class FlakyServer {
  readonly seen: Seen[] = [];
  readonly uploads = new Map<string, Upload>();
  readonly deleted = new Set<string>();
  /** Request ids by Idempotency-Key. */
  readonly keys = new Map<string, string>();
  /** How many polls get 202 before the result. */
  pendingPolls = 0;
  /** Lifetime of the next upload URLs; undefined: unlimited. */
  addressSeconds: number | undefined;
  /** Uses ETags that are not MD5s, as S3 does with SSE-KMS. */
  encrypts = false;
  faults: FaultPlan = () => undefined;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
  });

  static async start(): Promise<FlakyServer> {
    const server = new FlakyServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The options of a client of this server. */
  get settings() {
    return { apiKey: KEY, baseUrl: this.origin, logLevel: 'error' } as const;
  }

  /** The file assembled from the parts of a completed request. */
  assembled(requestId: string): Buffer {
    const upload = this.uploads.get(requestId);
    if (!upload?.completed) throw new Error('not completed');
    return Buffer.concat([...upload.parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes));
  }

  calls(route: Route): Seen[] {
    return this.seen.filter((seen) => seen.route === route);
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = this.#note(request);
    const fault = this.faults(seen);
    if (fault?.kind === 'cut') return cut(request, fault.afterBytes);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.body = Buffer.concat(chunks);
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'slow') {
      await sleep(fault.milliseconds);
      fault.done();
    }
    if (fault?.kind === 'answer') {
      response.writeHead(fault.status, fault.headers);
      response.end(fault.body);
    } else if (seen.route !== 'part' && request.headers[API_KEY_HEADER] !== KEY) {
      sendProblem(response, 'invalid_api_key', 'This key is not known here.');
    } else if (fault?.kind === 'silent') {
      this.#answer(seen, discarded(response), fault);
      request.socket.destroy();
    } else {
      this.#answer(seen, response, fault);
    }
  }

  #note(request: IncomingMessage): Seen {
    const url = new URL(request.url ?? '/', this.origin);
    const path = url.pathname.replace(/^\/v1/, '');
    const part = path.startsWith('/put/') ? Number(path.split('/')[3]) : null;
    const route = routeOf(path, request.method);
    const time = this.seen.filter((other) => other.route === route && other.part === part).length;
    const { method = 'GET', headers } = request;
    const seen = { route, part, time, method, url, headers, body: Buffer.alloc(0) };
    this.seen.push(seen);
    return seen;
  }

  #answer(seen: Seen, response: ServerResponse, fault: Fault | undefined): void {
    if (seen.route === 'initiate') this.#initiate(seen, response);
    else if (seen.route === 'part') this.#takePart(seen, response, fault);
    else if (seen.route === 'complete') this.#complete(seen, response);
    else if (seen.route === 'prediction') this.#predict(seen, response);
    else if (seen.route === 'delete') this.#delete(seen, response);
    else if (seen.route === 'resume') this.#resume(seen, response);
    else if (seen.route === 'submit') this.#submit(seen, response);
    else if (seen.route === 'list') sendJson(response, { requests: [], next_cursor: null });
    else if (seen.route === 'secret') sendJson(response, { secret: 'whsec_c2VjcmV0' });
    else if (seen.route === 'tokens') sendJson(response, tokenFor(seen));
    else if (seen.route === 'models') sendJson(response, { version: '1', weights: {}, models: [] });
    else sendJson(response, DISCRETE_ANSWER, 200, { [SPEECH_SECONDS_HEADER]: String(SPEECH_SECONDS) });
  }

  #initiate(seen: Seen, response: ServerResponse): void {
    const partCount = Number(seen.url.searchParams.get('part_count'));
    const requestId = this.#requestFor(seen, partCount);
    const numbers = Array.from({ length: partCount }, (_, i) => i + 1);
    sendJson(response, this.#addresses(requestId, numbers));
  }

  /** The same Idempotency-Key is the same request. */
  #requestFor({ headers, url }: Seen, partCount: number): string {
    const key = String(headers['idempotency-key']);
    const known = this.keys.get(key);
    if (known !== undefined) return known;
    const requestId = randomUUID();
    this.keys.set(key, requestId);
    this.uploads.set(requestId, {
      uploadId: randomUUID(),
      partCount,
      query: url.searchParams,
      parts: new Map(),
      completed: false,
      polls: 0,
    });
    return requestId;
  }

  #addresses(requestId: string, numbers: readonly number[]) {
    return {
      request_id: requestId,
      upload_id: this.uploads.get(requestId)?.uploadId,
      presigned_urls: numbers.map((number) => ({
        part_number: number,
        url: `${this.origin}/v1/put/${requestId}/${number}?signature=secret-signature`,
        ...(this.addressSeconds && {
          expires_at: new Date(Date.now() + this.addressSeconds * 1000).toISOString(),
        }),
      })),
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    };
  }

  #resume({ url }: Seen, response: ServerResponse): unknown {
    const requestId = url.pathname.split('/').at(-1) ?? '';
    const upload = this.uploads.get(requestId);
    if (!upload) return sendProblem(response, 'not_found', 'There is no such request.');
    const { partCount, parts, completed } = upload;
    const missing = Array.from({ length: partCount }, (_, i) => i + 1).filter((number) => !parts.has(number));
    return sendJson(response, {
      ...this.#addresses(requestId, missing),
      status: completed ? 'queued' : 'uploading',
      part_count: partCount,
      parts: [...parts].map(([number, bytes]) => ({
        PartNumber: number,
        ETag: this.#etagOf(bytes),
        bytes: bytes.length,
      })),
    });
  }

  #submit(seen: Seen, response: ServerResponse): void {
    const requestId = this.#requestFor(seen, 1);
    const upload = this.uploads.get(requestId);
    upload?.parts.set(1, seen.body);
    if (upload) upload.completed = true;
    sendJson(response, { request_id: requestId, status: 'queued' }, 202);
  }

  #takePart(seen: Seen, response: ServerResponse, fault: Fault | undefined): unknown {
    const upload = this.uploads.get(seen.url.pathname.split('/')[3] ?? '');
    if (!upload || seen.part === null) return sendProblem(response, 'not_found', 'There is no such upload.');
    let bytes = seen.body;
    if (fault?.kind === 'damage') {
      bytes = Buffer.from(bytes);
      bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
    }
    if (fault?.kind !== 'forget') upload.parts.set(seen.part, bytes);
    if (fault?.kind !== 'no-etag' && fault?.kind !== 'forget')
      response.setHeader('etag', this.#etagOf(bytes));
    if (this.encrypts) response.setHeader('x-amz-server-side-encryption', 'aws:kms');
    return response.end();
  }

  #etagOf(bytes: Buffer): string {
    return this.encrypts ? `"${md5(Buffer.concat([bytes, Buffer.from('encrypted')]))}"` : `"${md5(bytes)}"`;
  }

  #complete(seen: Seen, response: ServerResponse): unknown {
    const body = JSON.parse(seen.body.toString()) as {
      request_id: string;
      upload_id: string;
      parts: { PartNumber: number; ETag: string }[];
    };
    const upload = this.uploads.get(body.request_id);
    if (!upload || upload.uploadId !== body.upload_id) {
      return sendProblem(response, 'not_found', 'There is no such upload.');
    }
    const etags = new Map(body.parts.map(({ PartNumber, ETag }) => [PartNumber, ETag]));
    const numbers = Array.from({ length: upload.partCount }, (_, i) => i + 1);
    const missing_parts = numbers.filter((number) => !upload.parts.has(number));
    const wrong_parts = numbers.filter((number) => {
      const bytes = upload.parts.get(number);
      return bytes && etags.get(number) !== this.#etagOf(bytes);
    });
    if (missing_parts.length + wrong_parts.length > 0) {
      const figures = { missing_parts, wrong_parts };
      return sendProblem(response, 'bad_request', 'Parts are missing or wrong; send them again.', figures);
    }
    upload.completed = true;
    return sendJson(response, { request_id: body.request_id, status: 'queued' });
  }

  #predict({ url }: Seen, response: ServerResponse): unknown {
    const requestId = url.searchParams.get('request_id') ?? '';
    const upload = this.uploads.get(requestId);
    if (this.deleted.has(requestId)) return sendProblem(response, 'gone', 'This request has been deleted.');
    if (!upload) return sendProblem(response, 'not_found', 'There is no such request.');
    if (upload.polls++ < this.pendingPolls) {
      const progress = upload.polls / (this.pendingPolls + 1);
      return sendJson(response, { request_id: requestId, status: 'processing', progress }, 202);
    }
    return sendJson(response, { request_id: requestId, status: 'completed', emotions: TIMELINE });
  }

  #delete({ url }: Seen, response: ServerResponse): unknown {
    const requestId = url.pathname.split('/').at(-1) ?? '';
    if (!this.uploads.delete(requestId))
      return sendProblem(response, 'not_found', 'There is no such request.');
    this.deleted.add(requestId);
    return response.writeHead(204).end();
  }
}

export const DISCRETE_ANSWER = {
  main_emotion: 'happy',
  confidence: 0.7,
  all_predictions: { angry: 0.1, happy: 0.7, neutral: 0.1, sad: 0.1 },
};

export const SPEECH_SECONDS = 3.25;

export const TIMELINE = [
  { t: '00:00', emotion: 'happy', confidence: 0.9 },
  { t: '00:05', emotion: 'sad', confidence: 0.3 },
  { t: '100:10', emotion: 'angry', confidence: 0.5 },
];

function tokenFor({ body }: Seen) {
  const { expires_in = 600, scope = 'all' } = JSON.parse(body.toString()) as {
    expires_in?: number;
    scope?: string;
  };
  return { token: 'token-1', expires_at: new Date(Date.now() + expires_in * 1000).toISOString(), scope };
}

function routeOf(path: string, method = 'GET'): Route {
  if (path.startsWith('/put/')) return 'part';
  if (path.startsWith('/asynch/requests/')) return 'delete';
  if (path === '/asynch/requests') return method === 'GET' ? 'list' : 'submit';
  if (/^\/asynch\/upload\/[^/]{36}$/.test(path)) return 'resume';
  const routes: Record<string, Route> = {
    '/asynch/upload/initiate': 'initiate',
    '/asynch/upload/complete': 'complete',
    '/asynch/prediction': 'prediction',
    '/asynch/webhook-secret': 'secret',
    '/discrete/emotion': 'discrete',
    '/models': 'models',
    '/tokens': 'tokens',
  };
  const route = routes[path];
  if (!route) throw new Error(`no route ${path}`);
  return route;
}

async function cut(request: IncomingMessage, afterBytes: number): Promise<void> {
  let received = 0;
  if (afterBytes > 0) {
    for await (const chunk of request) {
      received += chunk.length;
      if (received >= afterBytes) break;
    }
  }
  request.socket.destroy();
}

/** A response that swallows everything written to it. */
function discarded(response: ServerResponse): ServerResponse {
  return new Proxy(response, {
    get: (target, name) =>
      name === 'writeHead' || name === 'end' ? () => discarded(target) : () => undefined,
  });
}

function md5(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}
