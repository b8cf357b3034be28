import {
  ADVISED_MIN_CONFIDENCE,
  DISCRETE_LIMITS,
  REQUEST_ID_HEADER,
  SPEECH_SECONDS_HEADER,
} from '@undertone/contract';
import { DiscretePayload, DiscreteResult } from '@undertone/contract/schemas';
import { json, KEY_PROBLEMS, type Operation, problems, ref } from '../openapi/operation.ts';

const { minSeconds, maxSeconds, payloadSampleRate } = DISCRETE_LIMITS;

const RESULT_EXAMPLE = {
  main_emotion: 'happy',
  confidence: 0.7312,
  all_predictions: { angry: 0.0934, happy: 0.7312, neutral: 0.1421, sad: 0.0333 },
};

const BODY = {
  content: {
    'multipart/form-data': {
      schema: {
        type: 'object',
        required: ['file'],
        properties: {
          file: {
            type: 'string',
            // `format` too: some client generators know nothing else.
            format: 'binary',
            contentMediaType: 'application/octet-stream',
            description: `The recording, ${minSeconds} to ${maxSeconds} seconds long, ideally a mono WAV at 44,100 Hz.`,
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
          ref(DiscretePayload),
        ],
      },
    },
  },
};

const RESPONSES = {
  200: {
    ...json(DiscreteResult, 'The emotion in the voice', RESULT_EXAMPLE),
    headers: {
      [REQUEST_ID_HEADER]: {
        type: 'string',
        description: 'The id of this request in the log. Quote it when you ask for help.',
      },
      'server-timing': {
        type: 'string',
        description: 'Milliseconds spent on receive, queue, decode, model and in total.',
      },
      [SPEECH_SECONDS_HEADER]: { type: 'string', description: 'Seconds of speech in the recording.' },
    },
  },
  ...problems(
    'bad_request',
    'missing_file',
    'unknown_model',
    'request_timeout',
    'file_too_large',
    'unsupported_media_type',
    'unreadable_audio',
    'audio_too_short',
    'audio_too_long',
    'sample_rate_too_low',
    'sample_rate_too_high',
    'quota_exceeded',
    ...KEY_PROBLEMS,
  ),
};

const DESCRIPTION = [
  `Send a recording of ${minSeconds} to ${maxSeconds} seconds, about one sentence, and get the emotion in its tone of voice.`,
  'As a file (faster): the part named `file` of a form. WAV always works; other formats need ffmpeg on the server.',
  `Or as samples in JSON: mono, ${payloadSampleRate} Hz.`,
  `Without speech, all emotions get about the same confidence. You may want to ignore a main emotion with a confidence below ${ADVISED_MIN_CONFIDENCE}.`,
  'The audio is never stored.',
].join('\n\n');

export const CLASSIFY_CLIP: Operation = {
  config: { tokenScope: 'discrete', documentedBody: BODY },
  schema: {
    operationId: 'classifyClip',
    tags: ['Discrete'],
    summary: 'Classify a short recording',
    description: DESCRIPTION,
    response: RESPONSES,
  },
};
