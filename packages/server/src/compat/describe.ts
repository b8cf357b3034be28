import { RateLimitStatus, StatusResult } from '@undertone/contract/schemas';
import type { FastifySchema } from 'fastify';
import { CLASSIFY_CLIP } from '../clips/describe.ts';
import { json, KEY_PROBLEMS, type Operation, problems } from '../openapi/operation.ts';
import { COMPLETE, INITIATE } from '../recordings/describe.ts';

const tags = ['Existing clients'];
const RATE_LIMIT_PROBLEMS = problems('missing_api_key', 'invalid_api_key', 'rate_limited');

/** The same operation under another path. */
function alias({ schema }: Operation, own: FastifySchema): Operation {
  return { schema: { ...schema, ...own } };
}

export const CLASSIFY_CLIP_SHORT: Operation = {
  ...CLASSIFY_CLIP,
  ...alias(CLASSIFY_CLIP, {
    operationId: 'classifyClipShort',
    summary: 'Classify a short recording (short path)',
    description: 'The same operation as `POST /v1/discrete/emotion`, under a shorter name.',
  }),
};

export const INITIATE_BY_GET = alias(INITIATE, {
  operationId: 'initiateUploadByGet',
  tags,
  summary: 'Start an upload (by GET)',
  description: 'The same operation as by POST. It creates a request, although it is a GET.',
});

export const INITIATE_EMOTION = alias(INITIATE, {
  operationId: 'initiateUploadEmotion',
  tags,
  summary: 'Start an upload (existing clients)',
  description: 'The same operation as `POST /v1/asynch/upload/initiate`.',
});

export const COMPLETE_EMOTION = alias(COMPLETE, {
  operationId: 'completeUploadEmotion',
  tags,
  summary: 'Complete an upload (existing clients)',
  description: 'The same operation as `POST /v1/asynch/upload/complete`.',
});

export const STATUS: Operation = {
  schema: {
    operationId: 'getStatus',
    tags,
    summary: 'The progress or the time line of a request (existing clients)',
    description:
      'The same as `GET /v1/asynch/prediction` under other names. The status is 200 even before the result is ready, and when processing has failed.',
    response: {
      200: json(StatusResult, 'The state, and the time line when completed'),
      ...problems('bad_request', 'not_found', 'gone', ...KEY_PROBLEMS),
    },
  },
};

export const RATE_LIMIT_STATUS: Operation = {
  schema: {
    operationId: 'rateLimitStatus',
    tags,
    summary: 'The limits of this key and their current use',
    description: 'Requests per minute, sizes and open streams. This call counts as a request itself.',
    response: { 200: json(RateLimitStatus, 'The limits'), ...RATE_LIMIT_PROBLEMS },
  },
};

export const RATE_LIMIT_HEALTH: Operation = {
  schema: {
    operationId: 'rateLimitHealth',
    tags,
    summary: 'Are limits being counted?',
    description: 'Always, so this always answers `healthy`.',
    response: {
      200: {
        description: 'They are',
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['status', 'timestamp'],
              properties: {
                status: { type: 'string', const: 'healthy' },
                timestamp: { type: 'number', description: 'Seconds since 1970.' },
              },
            },
          },
        },
      },
      ...RATE_LIMIT_PROBLEMS,
    },
  },
};
