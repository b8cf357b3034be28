import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { ASYNCH_LIMITS, ASYNCH_PATHS, IDEMPOTENCY_KEY_HEADER, PATHS } from '@undertone/contract';
import {
  CompleteBody,
  InitiateQuery,
  ListQuery,
  PredictionQuery,
  RequestId,
  SendQuery,
  StatusQuery,
} from '@undertone/contract/schemas';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { requireModel } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import { requireWebhookUrl } from '../webhooks/address.ts';
import {
  COMPLETE,
  COMPLETE_EMOTION,
  DELETE,
  INITIATE,
  INITIATE_BY_GET,
  INITIATE_EMOTION,
  LIST,
  PREDICTION,
  PUT_PART,
  RESUME,
  SEND,
  STATUS,
  WEBHOOK_SECRET,
} from './describe.ts';
import type { CreateCommand } from './new-request.ts';
import { listRequests, notFound, readPrediction, readStatus } from './requests.ts';

const { initiate, complete, upload, prediction, requests: requestsPath, part, webhookSecret } = ASYNCH_PATHS;
const REQUEST_PARAMS = Type.Object({ request_id: RequestId });
const NO_STORE = { 'cache-control': 'no-store' };

/** Long recordings: upload in parts or in one call, complete, ask for the time line, list, delete. */
export const asynchRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { requests, blobs, uploads, processor, asynchMetrics, settings, webhooks } = services;
  takeAnyBody(app);

  function baseUrl({ protocol, host, socket }: FastifyRequest): string {
    if (settings.publicUrl !== '') return settings.publicUrl;
    return `${protocol}://${host || `${socket.localAddress}:${socket.localPort}`}`;
  }

  for (const [method, base, operation] of [
    ['GET', PATHS.asynch, INITIATE_BY_GET],
    ['POST', PATHS.asynch, INITIATE],
    ['POST', PATHS.asynchEmotion, INITIATE_EMOTION],
  ] as const) {
    app.route({
      method,
      url: base + initiate,
      // A HEAD that follows the GET by itself would begin uploads that nobody wants.
      exposeHeadRoute: false,
      ...operation,
      schema: { ...operation.schema, querystring: InitiateQuery },
      handler: async (request, reply) => {
        reply.headers(NO_STORE);
        const caller = request as FastifyRequest;
        const command = parseCreate(caller, `${method} initiate`, request.query, services);
        return uploads.initiate(command, baseUrl(caller));
      },
    });
  }

  for (const [base, operation] of [
    [PATHS.asynch, COMPLETE],
    [PATHS.asynchEmotion, COMPLETE_EMOTION],
  ] as const) {
    app.post(
      base + complete,
      { ...operation, schema: { ...operation.schema, body: CompleteBody } },
      async (request, reply) => {
        reply.headers(NO_STORE);
        return uploads.complete(ownerOf(request), request.body);
      },
    );
  }

  app.get(
    `${PATHS.asynch}${upload}/:request_id`,
    { ...RESUME, schema: { ...RESUME.schema, params: REQUEST_PARAMS } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      return uploads.resume(ownerOf(request), request.params.request_id, baseUrl(request as FastifyRequest));
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
      // The stored text is the answer: a long time line is neither parsed nor written again.
      return reply.type('application/json; charset=utf-8').send(answer.result as never);
    },
  );

  app.get(
    `${PATHS.asynchEmotion}/status/:request_id`,
    {
      ...STATUS,
      schema: { ...STATUS.schema, params: REQUEST_PARAMS, querystring: StatusQuery },
    },
    async (request, reply) => {
      reply.headers(NO_STORE);
      const { comprehensive_output: comprehensive = false } = request.query;
      return readStatus(requests, request.params.request_id, ownerOf(request), { comprehensive });
    },
  );

  app.delete(
    `${PATHS.asynch}${requestsPath}/:request_id`,
    { ...DELETE, schema: { ...DELETE.schema, params: REQUEST_PARAMS } },
    async (request, reply) => {
      const id = request.params.request_id.toLowerCase();
      const outcome = await requests.delete(id, ownerOf(request));
      if (outcome === 'unknown') throw notFound();
      processor.drop(id);
      // The record went first: without it nothing finds the rest, and the sweep erases what a crash leaves.
      await blobs.eraseGroup(id);
      if (outcome === 'deleted') asynchMetrics.uploads.inc({ event: 'deleted' });
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

  await app.register(bodyRoutes, services);
};

/** Apart from the others, because here the body is read as it arrives. */
const bodyRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { uploads, presigner } = services;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  app.put(
    PATHS.asynch + part,
    { ...PUT_PART, schema: { ...PUT_PART.schema, ...PART_ADDRESS } },
    async (request, reply) => {
      const { request_id, part_number: partNumber } = request.params;
      const requestId = request_id.toLowerCase();
      const { expires, signature } = request.query;
      const verdict = presigner.verify({ requestId, partNumber, expires }, signature);
      if (verdict !== 'ok') throw new ProblemError('forbidden', FORBIDDEN[verdict]);
      const md5 = request.headers['content-md5'] as string | undefined;
      const { etag } = await uploads.addPart(requestId, partNumber, request.raw, md5);
      return reply.header('etag', `"${etag}"`).headers(NO_STORE).send();
    },
  );

  app.post(
    PATHS.asynch + requestsPath,
    { ...SEND, schema: { ...SEND.schema, querystring: SendQuery } },
    async (request, reply) => {
      const command = parseCreate(request as FastifyRequest, 'POST requests', request.query, services);
      return reply
        .code(202)
        .headers(NO_STORE)
        .send(await uploads.send(command, request.raw));
    },
  );
};

/** What a call says of the request that it makes, checked as far as it can be before anything is stored. */
function parseCreate(
  request: FastifyRequest,
  method: string,
  query: CreateCommand['query'],
  { classifier, settings }: Services,
): CreateCommand {
  requireModel(classifier, query.model);
  if (query.webhook_url !== undefined) requireWebhookUrl(query.webhook_url, settings.webhookPrivate);
  const idempotencyKey = request.headers[IDEMPOTENCY_KEY_HEADER] as string | undefined;
  return { owner: ownerOf(request), method, query, idempotencyKey };
}

const FORBIDDEN = {
  wrong_signature: 'The signature does not fit this URL: use it exactly as it was given.',
  expired: 'This URL has expired: begin a new upload.',
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

/** A body that is not needed may be empty or absent, whatever its content type says; one that is needed is JSON. */
function takeAnyBody(app: Parameters<typeof asynchRoutes>[0]): void {
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

function ownerOf({ caller }: FastifyRequest): string {
  if (caller === null) throw new Error('A route that needs a key was reached without one');
  return caller.id;
}
