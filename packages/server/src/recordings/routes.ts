import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { ASYNCH_LIMITS, ASYNCH_PATHS, IDEMPOTENCY_KEY_HEADER, PATHS } from '@undertone/contract';
import {
  CompleteBody,
  InitiateQuery,
  ListQuery,
  PredictionQuery,
  RequestId,
  SendQuery,
} from '@undertone/contract/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { audit, shownOwner } from '../audit.ts';
import { callerOf } from '../http/auth.ts';
import { leaveBodiesUnread } from '../http/body.ts';
import type { Operation } from '../openapi/operation.ts';
import { requireModel } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services, TypedApp } from '../services.ts';
import type { PartUrl } from '../stores/blobs.ts';
import { nextSlice } from '../stores/slices.ts';
import { traceOf } from '../trace.ts';
import { requireWebhookUrl } from '../webhooks/address.ts';
import {
  COMPLETE,
  DELETE,
  INITIATE,
  LIST,
  PREDICTION,
  PUT_PART,
  RESUME,
  SEND,
  WEBHOOK_SECRET,
} from './describe.ts';
import type { CreateCommand } from './new-request.ts';
import { listRequests, notFound, readPrediction } from './requests.ts';

const { initiate, complete, upload, prediction, requests: requestsPath, part, webhookSecret } = ASYNCH_PATHS;
export const REQUEST_PARAMS = Type.Object({ request_id: RequestId });
export const NO_STORE = { 'cache-control': 'no-store' };

/** Long recordings: upload in parts or in one call, complete, read the time line, list, delete. */
export const recordingRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { requests, blobs, uploads, worker, metrics, webhooks } = services;
  parseOptionalJson(app);

  // The documentation lists operations in this order: the simplest first.
  await app.register(sendRoute, services);
  addInitiateRoute(app, 'POST', PATHS.asynch + initiate, INITIATE, services);
  await app.register(partRoute, services);
  addCompleteRoute(app, PATHS.asynch + complete, COMPLETE, services);

  app.get(
    `${PATHS.asynch}${upload}/:request_id`,
    { ...RESUME, schema: { ...RESUME.schema, params: REQUEST_PARAMS } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      const baseUrl = services.baseUrlOf(request as FastifyRequest);
      const status = await uploads.resume(ownerOf(request), request.params.request_id, baseUrl);
      return sendUrls(reply as FastifyReply, status);
    },
  );

  app.get(
    PATHS.asynch + prediction,
    { ...PREDICTION, schema: { ...PREDICTION.schema, querystring: PredictionQuery } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      const { request_id, details = false } = request.query;
      const answer = await readPrediction(requests, request_id, ownerOf(request), { details });
      if ('pending' in answer) return reply.code(202).send(answer.pending);
      // The stored JSON is sent as it is: a long time line is not parsed again.
      const { result } = answer;
      reply.type('application/json; charset=utf-8');
      return reply.send(typeof result === 'string' ? result : Readable.from(result));
    },
  );

  app.delete(
    `${PATHS.asynch}${requestsPath}/:request_id`,
    { ...DELETE, schema: { ...DELETE.schema, params: REQUEST_PARAMS } },
    async (request, reply) => {
      const id = request.params.request_id.toLowerCase();
      const { owner, logId } = callerOf(request);
      const outcome = await requests.delete(id, owner);
      if (outcome === 'unknown') throw notFound();
      if (outcome === 'deleted') {
        audit(request.log, 'request.deleted', { recording: id, key: logId, owner: shownOwner(owner) });
      }
      worker.cancel(id);
      // The record is deleted first: without it the blobs cannot be found, and the sweep erases what a crash leaves.
      await blobs.eraseGroup(id);
      if (outcome === 'deleted') metrics.uploads.inc({ event: 'deleted' });
      return reply.code(204).send();
    },
  );

  app.get(
    PATHS.asynch + requestsPath,
    { ...LIST, schema: { ...LIST.schema, querystring: ListQuery } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      return listRequests(requests, ownerOf(request), request.query);
    },
  );

  app.get(PATHS.asynch + webhookSecret, WEBHOOK_SECRET, async (request, reply) => {
    reply.headers(NO_STORE);
    return { secret: webhooks.secretOf(ownerOf(request)) };
  });
};

export function addInitiateRoute(
  app: TypedApp,
  method: 'GET' | 'POST',
  url: string,
  operation: Operation,
  services: Services,
): void {
  app.route({
    method,
    url,
    // A HEAD route that follows the GET by itself would start uploads.
    exposeHeadRoute: false,
    ...operation,
    schema: { ...operation.schema, querystring: InitiateQuery },
    handler: async (request, reply) => {
      reply.headers(NO_STORE);
      const caller = request as FastifyRequest;
      const command = parseCreate(caller, `${method} initiate`, request.query, services);
      await services.audioHours.require(command);
      const begun = await services.uploads.initiate(command, services.baseUrlOf(caller));
      request.recording = begun.request_id;
      return sendUrls(reply as FastifyReply, begun);
    },
  });
}

const URLS_PER_SLICE = 1_000;

/** Ten thousand URLs are megabytes of JSON: they are written slice by slice. */
function sendUrls<T extends { presigned_urls: readonly PartUrl[] }>(
  reply: FastifyReply,
  answer: T,
): T | FastifyReply {
  if (answer.presigned_urls.length <= URLS_PER_SLICE) return answer;
  async function* text(): AsyncGenerator<string> {
    const { presigned_urls, ...rest } = answer;
    yield `${JSON.stringify(rest).slice(0, -1)},"presigned_urls":`;
    for (let at = 0; at < presigned_urls.length; at += URLS_PER_SLICE) {
      await nextSlice();
      const slice = JSON.stringify(presigned_urls.slice(at, at + URLS_PER_SLICE));
      yield (at === 0 ? '[' : ',') + slice.slice(1, -1);
    }
    yield ']}';
  }
  return reply.type('application/json; charset=utf-8').send(Readable.from(text()));
}

export function addCompleteRoute(
  app: TypedApp,
  url: string,
  operation: Operation,
  { uploads }: Services,
): void {
  app.post(
    url,
    { ...operation, schema: { ...operation.schema, body: CompleteBody } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      return uploads.complete(callerOf(request), request.body);
    },
  );
}

/** In a scope of its own, like the next one: it reads the body as a stream. */
const sendRoute: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  leaveBodiesUnread(app);
  app.post(
    PATHS.asynch + requestsPath,
    { ...SEND, schema: { ...SEND.schema, querystring: SendQuery } },
    async (request, reply) => {
      const command = parseCreate(request as FastifyRequest, 'POST requests', request.query, services);
      await services.audioHours.require(command);
      const sent = await services.uploads.send(command, request.raw);
      request.recording = sent.request_id;
      return reply.code(202).headers(NO_STORE).send(sent);
    },
  );
};

const partRoute: FastifyPluginAsyncTypebox<Services> = async (app, { uploads, secrets }) => {
  leaveBodiesUnread(app);
  app.put(
    PATHS.asynch + part,
    { ...PUT_PART, schema: { ...PUT_PART.schema, ...PART_ADDRESS } },
    async (request, reply) => {
      const { request_id, part_number: partNumber } = request.params;
      const requestId = request_id.toLowerCase();
      const { expires, signature } = request.query;
      const verdict = secrets.verify({ requestId, partNumber, expires }, signature);
      if (verdict !== 'ok') throw new ProblemError('forbidden', FORBIDDEN[verdict]);
      const md5 = request.headers['content-md5'] as string | undefined;
      const onOwner = (owner: string) => app.connections.markKnown(request.raw.socket, owner);
      const { etag } = await uploads.addPart(requestId, partNumber, request.raw, onOwner, md5);
      return reply.header('etag', `"${etag}"`).headers(NO_STORE).send();
    },
  );
};

/** Validates everything that can be checked before anything is stored. */
function parseCreate(
  request: FastifyRequest,
  method: string,
  query: CreateCommand['query'],
  { classifier, settings }: Services,
): CreateCommand {
  requireModel(classifier, query.model);
  requirePrintable('label', query.label);
  requirePrintable('webhook_url', query.webhook_url);
  if (query.webhook_url !== undefined) requireWebhookUrl(query.webhook_url, settings.webhookPrivate);
  const idempotencyKey = request.headers[IDEMPOTENCY_KEY_HEADER] as string | undefined;
  const { owner, limits } = callerOf(request);
  return { owner, limits, method, query, idempotencyKey, trace: traceOf(request) };
}

/** PostgreSQL cannot store NUL, and no control character belongs in a name or an address. */
function requirePrintable(name: string, text = ''): void {
  if (!/\p{Cc}/u.test(text)) return;
  throw new ProblemError('bad_request', `${name} contains control characters. Send it without them.`);
}

const FORBIDDEN = {
  wrong_signature: 'The signature does not match this URL. Use the URL exactly as given.',
  expired: 'This URL has expired. Start a new upload.',
};

const PART_ADDRESS = {
  params: Type.Object({
    request_id: RequestId,
    part_number: Type.Integer({ minimum: 1, maximum: ASYNCH_LIMITS.maxParts }),
  }),
  querystring: Type.Object({
    expires: Type.Integer({ description: 'Seconds since 1970, as signed.' }),
    signature: Type.String({ maxLength: 100, description: 'As given by initiate.' }),
  }),
};

/** A body that is not needed may be empty or absent, whatever its content type. A needed one is JSON. */
export function parseOptionalJson(app: TypedApp): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => {
    if (body.length === 0) return done(null);
    try {
      done(null, JSON.parse(body as string));
    } catch (cause) {
      done(new ProblemError('bad_request', 'The body is not valid JSON.', { cause }));
    }
  });
}

export function ownerOf(request: Pick<FastifyRequest, 'caller'>): string {
  return callerOf(request).owner;
}
