import {
  ADVISED_MIN_CONFIDENCE,
  DISCRETE_LIMITS,
  REQUEST_ID_HEADER,
  SPEECH_SECONDS_HEADER,
} from '@undertone/contract';
import { json, type Operation, problems } from './describe.ts';

const { minSeconds, maxSeconds, payloadSampleRate } = DISCRETE_LIMITS;

const RESULT_EXAMPLE = {
  main_emotion: 'happy',
  confidence: 0.7312,
  all_predictions: { angry: 0.0934, happy: 0.7312, neutral: 0.1421, sad: 0.0333 },
};

const DISCRETE_BODY = {
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['file'],
        properties: {
          file: {
            type: 'string',
            // `format` beside it, for generators of clients that know only that.
            format: 'binary',
            contentMediaType: 'application/octet-stream',
            description: `The recording, ${minSeconds} to ${maxSeconds} seconds long; best a mono WAV at 44,100 Hz.`,
          },
        },
      },
    },
    'application/json': {
      schema: {
        oneOf: [
          {
            type: 'string',
            contentMediaType: 'application/json',
            description: 'A JSON string whose content is the JSON object below.',
          },
          { $ref: 'DiscretePayload#' },
        ],
      },
    },
  },
};

const DISCRETE_RESPONSES = {
  200: {
    ...json('DiscreteResult', 'The emotion heard', RESULT_EXAMPLE),
    headers: {
      [REQUEST_ID_HEADER]: {
        type: 'string',
        description: 'Names this request in logs and in questions to the operator.',
      },
      'server-timing': {
        type: 'string',
        description: 'Milliseconds spent on receive, queue, decode, model and in total.',
      },
      [SPEECH_SECONDS_HEADER]: { type: 'string', description: 'Seconds of speech heard in the recording.' },
    },
  },
  ...problems(
    'bad_request',
    'missing_file',
    'unknown_model',
    'missing_api_key',
    'invalid_api_key',
    'request_timeout',
    'file_too_large',
    'unsupported_media_type',
    'unreadable_audio',
    'audio_too_short',
    'audio_too_long',
    'sample_rate_too_low',
    'sample_rate_too_high',
    'rate_limited',
    'internal',
    'overloaded',
  ),
};

const DISCRETE_DESCRIPTION = [
  `Send a recording of ${minSeconds} to ${maxSeconds} seconds, about one sentence, and get the emotion in its tone of voice.`,
  'Either as a file (faster): the part named `file` of a form. WAV is always read; other formats where the server has ffmpeg.',
  `Or as prepared samples: mono, ${payloadSampleRate} Hz, as JSON.`,
  `If nobody speaks, all emotions get about the same confidence. You may want to drop a main emotion with a confidence below ${ADVISED_MIN_CONFIDENCE}.`,
  'The audio is never stored.',
].join('\n\n');

export const DISCRETE_OPERATION: Operation = {
  config: { documentedBody: DISCRETE_BODY },
  schema: {
    operationId: 'classifyClip',
    tags: ['Discrete'],
    summary: 'Classify a short recording',
    description: DISCRETE_DESCRIPTION,
    response: DISCRETE_RESPONSES,
  },
};

export const DISCRETE_SHORT_OPERATION: Operation = {
  ...DISCRETE_OPERATION,
  schema: {
    ...DISCRETE_OPERATION.schema,
    operationId: 'classifyClipShort',
    summary: 'Classify a short recording (short path)',
    description: 'The same operation as `POST /v1/discrete/emotion`, under a shorter name.',
  },
};

export const MODELS_OPERATION: Operation = {
  schema: {
    operationId: 'listModels',
    tags: ['Discrete'],
    summary: 'The models on offer',
    description: 'Their emotions, how well they did in tests, and the licence of the weights in use.',
    response: {
      200: json('ModelList', 'The models'),
      ...problems('missing_api_key', 'invalid_api_key', 'rate_limited'),
    },
  },
};

export const RATE_LIMIT_STATUS_OPERATION: Operation = {
  schema: {
    operationId: 'rateLimitStatus',
    tags: ['Existing clients'],
    summary: 'The limits of this key, and how far they are used',
    response: {
      200: json('RateLimitStatus', 'The limits'),
      ...problems('missing_api_key', 'invalid_api_key', 'rate_limited'),
    },
  },
};

export const RATE_LIMIT_HEALTH_OPERATION: Operation = {
  schema: {
    operationId: 'rateLimitHealth',
    tags: ['Existing clients'],
    summary: 'Are limits being counted?',
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
      ...problems('missing_api_key', 'invalid_api_key', 'rate_limited'),
    },
  },
};

const STATUS = (description: string, status: string) => ({
  description,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['status'],
        properties: { status: { type: 'string', const: status } },
      },
    },
  },
});

export const HEALTH_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'health',
    tags: ['Operations'],
    summary: 'Is the process alive?',
    security: [],
    response: { 200: STATUS('The process is alive', 'ok') },
  },
};

export const READY_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'ready',
    tags: ['Operations'],
    summary: 'Can it take requests?',
    description:
      '503 when no inference thread runs, the store cannot be written, or the server is stopping; `detail` says which.',
    security: [],
    response: { 200: STATUS('It can take requests', 'ready'), ...problems('overloaded') },
  },
};

export const METRICS_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'metrics',
    tags: ['Operations'],
    summary: 'Figures for Prometheus',
    security: [],
    response: {
      200: { description: 'The figures', content: { 'text/plain': { schema: { type: 'string' } } } },
    },
  },
};
