import {
  ASYNCH_LIMITS,
  IDEMPOTENCY_KEY_HEADER,
  INTERVAL_SECONDS,
  MIN_SPEECH_SECONDS,
} from '@undertone/contract';
import {
  AsynchResult,
  CompleteBody,
  CompleteResult,
  InitiateResult,
  PendingResult,
  RequestList,
  UploadStatus,
  WebhookSecret,
} from '@undertone/contract/schemas';
import { json, KEY_PROBLEMS, type Operation, problem, problems, ref } from '../openapi/operation.ts';

const { minSeconds, maxFileBytes, maxParts } = ASYNCH_LIMITS;
const tags = ['Asynch'];

const INITIATE_DESCRIPTION = [
  `Start the upload of a recording of at least ${minSeconds} seconds and up to ${maxFileBytes / 2 ** 30} GiB in 1 to ${maxParts} parts, and get a URL for each part.`,
  `\`interval\` is the step of the time line: ${INTERVAL_SECONDS.min} to ${INTERVAL_SECONDS.max} seconds.`,
  'With `channels=separate` each channel is analysed separately, such as the two sides of a call.',
  'With `webhook_url` the receiver is notified when processing ends; see `GET /v1/asynch/webhook-secret`.',
  'With the header `Idempotency-Key`, a retried call returns the same request for 24 hours.',
  'The file name is not stored. Everything about the request is erased after 24 hours.',
].join('\n\n');

const IDEMPOTENCY_HEADERS = {
  type: 'object',
  properties: {
    [IDEMPOTENCY_KEY_HEADER]: {
      type: 'string',
      description: 'Calls with the same key and the same query return the same request.',
    },
  },
};

/** `format` too: some client generators know nothing else. */
const BINARY = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };

export const INITIATE: Operation = {
  schema: {
    operationId: 'initiateUpload',
    tags,
    summary: 'Start an upload',
    description: INITIATE_DESCRIPTION,
    headers: IDEMPOTENCY_HEADERS,
    response: {
      200: json(InitiateResult, 'The URLs of the parts'),
      ...problems(
        'bad_request',
        'unknown_model',
        'conflict',
        'file_too_large',
        'storage_limit',
        'quota_exceeded',
        ...KEY_PROBLEMS,
      ),
    },
  },
};

export const PUT_PART: Operation = {
  config: {
    withoutKey: true,
    documentedBody: {
      content: {
        'application/octet-stream': {
          schema: BINARY,
        },
      },
    },
  },
  schema: {
    operationId: 'putPart',
    tags,
    summary: 'Upload one part',
    description: [
      'To a URL from initiate; no key is needed. A 200 means that the part is stored. Uploading a part again replaces it.',
      'A `Content-MD5` header, if sent, is checked.',
    ].join('\n\n'),
    security: [],
    response: {
      200: {
        description: 'The part is stored',
        type: 'null',
        headers: { etag: { type: 'string', description: 'MD5 of the part in quotes; send it to complete.' } },
      },
      ...problems(
        'bad_request',
        'forbidden',
        'not_found',
        'request_timeout',
        'conflict',
        'gone',
        'file_too_large',
        'storage_limit',
        'internal',
        'overloaded',
      ),
    },
  },
};

export const RESUME: Operation = {
  schema: {
    operationId: 'resumeUpload',
    tags,
    summary: 'Resume an upload',
    description:
      'After an interruption: the parts received, and a URL for each missing one. Upload those, then complete.',
    response: {
      200: json(UploadStatus, 'The parts received, and the URLs of the missing ones'),
      ...problems('bad_request', 'not_found', 'gone', ...KEY_PROBLEMS),
    },
  },
};

export const SEND: Operation = {
  config: {
    documentedBody: {
      content: {
        'application/octet-stream': { schema: BINARY },
        'multipart/form-data': {
          schema: { type: 'object', required: ['file'], properties: { file: BINARY } },
        },
      },
    },
  },
  schema: {
    operationId: 'sendRecording',
    tags,
    summary: 'Upload a whole recording in one call',
    description: [
      'The recording is the body, with any content type, or the part named `file` of a form: `curl -X POST -T call.wav -H "x-api-key: ..." .../v1/asynch/requests`.',
      `Up to ${maxFileBytes / 2 ** 30} GiB, with a Content-Length or chunked. Nothing is stored if the connection breaks; uploads in parts can be resumed.`,
      'The query parameters and `Idempotency-Key` are the same as for initiate.',
    ].join('\n\n'),
    headers: IDEMPOTENCY_HEADERS,
    response: {
      202: json(CompleteResult, 'The recording is stored and queued'),
      ...problems(
        'bad_request',
        'missing_file',
        'unknown_model',
        'request_timeout',
        'conflict',
        'file_too_large',
        'storage_limit',
        'unsupported_media_type',
        'quota_exceeded',
        ...KEY_PROBLEMS,
      ),
    },
  },
};

export const LIST: Operation = {
  schema: {
    operationId: 'listRequests',
    tags,
    summary: 'List your requests',
    description:
      'The requests of this key, newest first. Expired ones are listed only with `status=expired`. Pass `next_cursor` as `cursor` to get the next page.',
    response: {
      200: json(RequestList, 'One page of requests'),
      ...problems('bad_request', ...KEY_PROBLEMS),
    },
  },
};

export const WEBHOOK_SECRET: Operation = {
  config: { tokenScope: 'none' },
  schema: {
    operationId: 'getWebhookSecret',
    tags,
    summary: 'Get the webhook signing secret',
    description: [
      'Webhooks follow the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`; its libraries accept this secret as it is. The body is a `WebhookEvent`.',
      'Any 2xx means delivered. Otherwise delivery is retried after 5 s, 30 s, 2 min, 10 min, 1 h and 6 h, with the same `webhook-id`. Redirects are not followed.',
    ].join('\n\n'),
    response: {
      200: json(WebhookSecret, 'The secret of this key'),
      ...problems(...KEY_PROBLEMS),
    },
  },
};

export const COMPLETE: Operation = {
  config: { documentedBody: { content: { 'application/json': { schema: ref(CompleteBody) } } } },
  schema: {
    operationId: 'completeUpload',
    tags,
    summary: 'Complete an upload',
    description:
      'Lists every part with its ETag and queues the recording. If parts are missing or wrong, the error lists them and the upload stays open. Safe to retry.',
    response: {
      200: json(CompleteResult, 'The upload is complete'),
      ...problems('bad_request', 'not_found', 'gone', 'quota_exceeded', ...KEY_PROBLEMS),
    },
  },
};

export const PREDICTION: Operation = {
  schema: {
    operationId: 'getPrediction',
    tags,
    summary: 'Get the time line or the progress',
    description: `With \`details=true\` every step also has its times, its seconds of speech and all probabilities, and neighbouring steps are joined into segments. Ignore the emotion of a step with less than ${MIN_SPEECH_SECONDS} s of speech.`,
    response: {
      200: json(AsynchResult, 'The time line'),
      202: json(PendingResult, 'The result is not ready yet'),
      ...problems('bad_request', 'not_found', 'gone', ...KEY_PROBLEMS),
      422: problem(
        'unreadable_audio',
        'audio_too_short',
        'audio_too_long',
        'sample_rate_too_low',
        'sample_rate_too_high',
        'result_too_large',
        'processing_failed',
      ),
    },
  },
};

export const DELETE: Operation = {
  schema: {
    operationId: 'deleteRequest',
    tags,
    summary: 'Cancel and erase a request',
    description:
      'In any state. The audio, the parts and the result are erased; processing stops within a second.',
    response: {
      204: { description: 'Erased, now or by an earlier call', type: 'null' },
      ...problems('bad_request', 'not_found', ...KEY_PROBLEMS),
    },
  },
};
