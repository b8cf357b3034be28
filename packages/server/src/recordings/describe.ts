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
  `Announce a recording of at least ${minSeconds} seconds and up to ${maxFileBytes / 2 ** 30} GiB in 1 to ${maxParts} parts, and get a URL for each part.`,
  `\`interval\` (beta) is the step of the time line: ${INTERVAL_SECONDS.min} to ${INTERVAL_SECONDS.max} seconds.`,
  'With `channels=separate` each channel is heard apart, such as the two sides of a call.',
  'With `webhook_url` the receiver is told when it is done; see `GET /v1/asynch/webhook-secret`.',
  'With the header `Idempotency-Key`, the same call sent again gives the same request for 24 hours.',
  'The file name is not kept. Everything about the request is gone 24 hours later.',
].join('\n\n');

const IDEMPOTENCY_HEADERS = {
  type: 'object',
  properties: {
    [IDEMPOTENCY_KEY_HEADER]: {
      type: 'string',
      description: 'The same key with the same query means the same request.',
    },
  },
};

const BINARY = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };

export const INITIATE: Operation = {
  schema: {
    operationId: 'initiateUpload',
    tags,
    summary: 'Begin an upload',
    description: INITIATE_DESCRIPTION,
    headers: IDEMPOTENCY_HEADERS,
    response: {
      200: json(InitiateResult, 'Where to send the parts'),
      ...problems('bad_request', 'unknown_model', 'conflict', ...KEY_PROBLEMS),
    },
  },
};

export const PUT_PART: Operation = {
  config: {
    withoutKey: true,
    documentedBody: {
      content: {
        'application/octet-stream': {
          // `format` beside it, for generators of clients that know only that.
          schema: BINARY,
        },
      },
    },
  },
  schema: {
    operationId: 'putPart',
    tags,
    summary: 'Send one part',
    description: [
      'To a URL given by initiate; it needs no key. The part is safely stored when the answer comes. Sending a part again replaces it.',
      'A `Content-MD5` header is checked when there is one.',
    ].join('\n\n'),
    security: [],
    response: {
      200: {
        description: 'The part is stored',
        type: 'null',
        headers: { etag: { type: 'string', description: 'MD5 of the part in quotes; name it in complete.' } },
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
    summary: 'What an upload still needs',
    description:
      'After an interruption: the parts that have arrived, and a URL for each that has not. Send those, then complete.',
    response: {
      200: json(UploadStatus, 'What has arrived, and where the rest goes'),
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
    summary: 'Send a whole recording in one call',
    description: [
      'The recording is the body, whatever its content type, or the part named `file` of a form: `curl -X POST -T call.wav -H "x-api-key: ..." .../v1/asynch/requests`.',
      `Up to ${maxFileBytes / 2 ** 30} GiB, of known length or chunked. Nothing is kept of a call that breaks off; uploads in parts can be resumed.`,
      'The query, and `Idempotency-Key`, are those of initiate.',
    ].join('\n\n'),
    headers: IDEMPOTENCY_HEADERS,
    response: {
      202: json(CompleteResult, 'The recording is stored and waits to be processed'),
      ...problems(
        'bad_request',
        'missing_file',
        'unknown_model',
        'request_timeout',
        'conflict',
        'file_too_large',
        'storage_limit',
        'unsupported_media_type',
        ...KEY_PROBLEMS,
      ),
    },
  },
};

export const LIST: Operation = {
  schema: {
    operationId: 'listRequests',
    tags,
    summary: 'Your requests',
    description:
      'Those of this key, newest first. Those that have expired are listed with `status=expired` only. Go on with `cursor` while there is a `next_cursor`.',
    response: {
      200: json(RequestList, 'A page of them'),
      ...problems('bad_request', ...KEY_PROBLEMS),
    },
  },
};

export const WEBHOOK_SECRET: Operation = {
  schema: {
    operationId: 'getWebhookSecret',
    tags,
    summary: 'What webhooks to you are signed with',
    description: [
      'Webhooks follow the Standard Webhooks specification: `webhook-id`, `webhook-timestamp` and `webhook-signature`; its libraries take this secret as it is. The body is a `WebhookEvent`.',
      'Any 2xx is an answer. Otherwise it is sent again after 5 s, 30 s, 2 min, 10 min, 1 h and 6 h, with the same `webhook-id`. Redirects are not followed.',
    ].join('\n\n'),
    response: {
      200: json(WebhookSecret, 'The secret of this key'),
      ...problems(...KEY_PROBLEMS),
    },
  },
};

export const COMPLETE: Operation = {
  // By its name, so that generated clients have one class for it.
  config: { documentedBody: { content: { 'application/json': { schema: ref(CompleteBody) } } } },
  schema: {
    operationId: 'completeUpload',
    tags,
    summary: 'Complete an upload',
    description:
      'Names every part with its ETag; processing begins. Missing or wrong parts are named, and the upload stays open. Calling it again is harmless.',
    response: {
      200: json(CompleteResult, 'The upload is complete'),
      ...problems('bad_request', 'not_found', 'gone', ...KEY_PROBLEMS),
    },
  },
};

export const PREDICTION: Operation = {
  schema: {
    operationId: 'getPrediction',
    tags,
    summary: 'The time line, or how far it is',
    description: `With \`details=true\` every step also has its times, its speech and all probabilities, and neighbouring steps are joined into segments. A step with less than ${MIN_SPEECH_SECONDS} s of speech is no speech: its emotion says nothing.`,
    response: {
      200: json(AsynchResult, 'The time line'),
      202: json(PendingResult, 'The result is still to come'),
      ...problems('bad_request', 'not_found', 'gone', ...KEY_PROBLEMS),
      422: problem(
        'unreadable_audio',
        'audio_too_short',
        'audio_too_long',
        'sample_rate_too_low',
        'sample_rate_too_high',
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
      'In any state. The audio, the parts and the result are gone; processing stops within a second.',
    response: {
      204: { description: 'Nothing is left. The same for a request that was deleted before', type: 'null' },
      ...problems('bad_request', 'not_found', ...KEY_PROBLEMS),
    },
  },
};
