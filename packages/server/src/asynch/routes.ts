import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  DEFAULT_MODEL,
  INTERVAL_SECONDS,
  type InitiateQuery as Initiate,
  PATHS,
} from '@undertone/contract';
import { CompleteBody, InitiateQuery, PredictionQuery, RequestId } from '@undertone/contract/schemas';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import { COMPLETE, DELETE, INITIATE, INITIATE_BY_GET, PREDICTION, PUT_PART } from './operations.ts';
import type { AsynchService } from './service.ts';
import { completeUpload } from './uploads/complete.ts';
import { PartUpload } from './uploads/part-upload.ts';
import { PART_PATH } from './uploads/presign.ts';
import { requireLiving, requireOwned } from './uploads/upload-state.ts';

const { initiate, complete, prediction, requests: requestsPath } = ASYNCH_PATHS;
const NO_STORE = { 'cache-control': 'no-store' };

/** Long recordings: upload in parts, complete, ask for the time line, delete. */
export const asynchRoutes: FastifyPluginAsyncTypebox<Services> = async (app, { asynch, settings }) => {
  const { requests, blobs, queue } = asynch.stores;
  const { metrics } = asynch;

  async function beginUpload(query: Initiate, request: FastifyRequest) {
    // file_name is asked for because clients send it. Nothing needs it, so it is neither kept nor used.
    const { part_count, model = DEFAULT_MODEL, interval = INTERVAL_SECONDS.default } = query;
    const id = randomUUID();
    const uploadId = randomUUID();
    const createdAt = asynch.now();
    const expiresAt = createdAt + ASYNCH_LIMITS.retentionSeconds * 1000;
    await requests.create({
      id,
      owner: ownerOf(request),
      uploadId,
      model,
      intervalSeconds: interval,
      partCount: part_count,
      createdAt,
      expiresAt,
    });
    metrics.uploads.inc({ event: 'initiated' });
    return {
      request_id: id,
      upload_id: uploadId,
      presigned_urls: await asynch.presigner.addresses(baseUrl(request), id, part_count, expiresAt),
      expires_at: new Date(expiresAt).toISOString(),
    };
  }

  function baseUrl({ protocol, host, socket }: FastifyRequest): string {
    if (settings.publicUrl !== '') return settings.publicUrl;
    return `${protocol}://${host || `${socket.localAddress}:${socket.localPort}`}`;
  }

  for (const [method, operation] of [
    ['GET', INITIATE_BY_GET],
    ['POST', INITIATE],
  ] as const) {
    app.route({
      method,
      url: PATHS.asynch + initiate,
      // A HEAD that follows the GET by itself would begin uploads that nobody wants.
      exposeHeadRoute: false,
      ...operation,
      schema: { ...operation.schema, querystring: InitiateQuery },
      handler: async (request, reply) => {
        reply.headers(NO_STORE);
        return beginUpload(request.query, request as FastifyRequest);
      },
    });
  }

  app.post(
    PATHS.asynch + complete,
    { ...COMPLETE, schema: { ...COMPLETE.schema, body: CompleteBody } },
    async (request, reply) => {
      const { request_id, upload_id, parts } = request.body;
      const found = requireOwned(await requests.find(request_id.toLowerCase()), ownerOf(request));
      if (found.uploadId !== upload_id) {
        throw new ProblemError('not_found', 'The upload_id is not that of this request_id.');
      }
      if (found.state === 'uploading') {
        await completeUpload(requests, found, parts);
        metrics.uploads.inc({ event: 'completed' });
      }
      const { id, state } = requireLiving(await requests.find(found.id));
      // Also when it was called before: a crash may have come between the state and the job.
      if (state === 'queued') await queue.add(id);
      asynch.wake();
      reply.headers(NO_STORE);
      return { request_id: id, status: state };
    },
  );

  app.get(
    PATHS.asynch + prediction,
    { ...PREDICTION, schema: { ...PREDICTION.schema, querystring: PredictionQuery } },
    async (request, reply) => {
      const id = request.query.request_id.toLowerCase();
      const { state, progress } = requireOwned(await requests.find(id), ownerOf(request));
      reply.headers(NO_STORE);
      if (state !== 'completed' && state !== 'failed') {
        return reply.code(202).send({ request_id: id, status: state, progress: Number(progress.toFixed(4)) });
      }
      const outcome = await requests.outcome(id);
      if (outcome === null) throw new ProblemError('gone', 'This request is gone; upload the file again.');
      if ('failure' in outcome) {
        const { code, detail, figures } = outcome.failure;
        throw new ProblemError(code, detail, { figures });
      }
      // The stored text is the answer: a long time line is neither parsed nor written again.
      return reply.type('application/json; charset=utf-8').send(outcome.result);
    },
  );

  app.delete(
    `${PATHS.asynch}${requestsPath}/:request_id`,
    { ...DELETE, schema: { ...DELETE.schema, params: Type.Object({ request_id: RequestId }) } },
    async (request, reply) => {
      const id = request.params.request_id.toLowerCase();
      const found = await requests.find(id);
      if (found?.owner !== ownerOf(request)) {
        throw new ProblemError('not_found', 'There is no request with this request_id.');
      }
      // The record first: without it nothing finds the rest, and the sweeper erases what a crash leaves.
      await requests.delete(id);
      await queue.remove(id);
      await blobs.eraseGroup(id);
      metrics.uploads.inc({ event: 'deleted' });
      return reply.code(204).send();
    },
  );

  await app.register(partRoute, asynch);
};

/** Apart from the others, because here the body is read as it arrives. */
const partRoute: FastifyPluginAsyncTypebox<AsynchService> = async (app, asynch) => {
  const { requests, blobs } = asynch.stores;
  const upload = new PartUpload(requests, blobs, asynch.partPatience);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  app.put(
    PART_PATH,
    { ...PUT_PART, schema: { ...PUT_PART.schema, ...PART_ADDRESS } },
    async (request, reply) => {
      const { request_id: requestId, part_number: partNumber } = request.params;
      const { expires, signature } = request.query;
      asynch.presigner.verify({ requestId, partNumber, expires }, signature);
      const { etag, bytes } = await upload.take(
        requestId,
        partNumber,
        request.raw,
        request.headers['content-md5'] as string | undefined,
      );
      asynch.metrics.partBytes.inc(bytes);
      return reply.header('etag', `"${etag}"`).headers(NO_STORE).send();
    },
  );
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

function ownerOf({ caller }: FastifyRequest): string {
  if (caller === null) throw new Error('A route that needs a key was reached without one');
  return caller.id;
}
