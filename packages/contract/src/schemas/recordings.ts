import { Type } from 'typebox';
import { ASYNCH_LIMITS, LIST_LIMIT, MIN_SPEECH_SECONDS } from '../limits.ts';
import { CHANNEL_MODES, REQUEST_STATES } from '../recordings.ts';
import {
  AllPredictions,
  Confidence,
  EmotionName,
  IntervalSeconds,
  ModelName,
  RequestId,
  Timestamp,
} from './common.ts';

const PartNumber = Type.Integer({ minimum: 1, maximum: ASYNCH_LIMITS.maxParts });

const Status = Type.Enum([...REQUEST_STATES], { type: 'string', title: 'RequestStatus' });

const Progress = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'How much of the current state is done, 0 to 1.',
});

const Label = Type.Union([Type.String(), Type.Null()], { description: 'Your own name for the recording.' });

const RECORDING_OPTIONS = {
  model: Type.Optional(ModelName),
  interval: Type.Optional(IntervalSeconds),
  step: Type.Optional({ ...IntervalSeconds, description: 'Same as `interval`.' }),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: ASYNCH_LIMITS.maxLabelLength,
      description: 'Your own name for the recording, shown in lists and webhooks.',
    }),
  ),
  channels: Type.Optional(
    Type.Enum([...CHANNEL_MODES], {
      title: 'ChannelMode',
      type: 'string',
      default: CHANNEL_MODES[0],
      description: `\`separate\` analyses each channel separately, up to ${ASYNCH_LIMITS.maxChannels}.`,
    }),
  ),
  webhook_url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: ASYNCH_LIMITS.maxWebhookUrlLength,
      description:
        'Notified when the request has finished (Standard Webhooks). An https URL with a public address.',
    }),
  ),
};

export const InitiateQuery = Type.Object({
  file_name: Type.String({ minLength: 1, maxLength: ASYNCH_LIMITS.maxFileNameLength }),
  part_count: PartNumber,
  file_size: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Bytes of the whole recording. What cannot be stored is then refused before it is sent.',
    }),
  ),
  ...RECORDING_OPTIONS,
});

/** Sends a whole recording in one call. */
export const SendQuery = Type.Object({
  file_name: Type.Optional(Type.String({ maxLength: ASYNCH_LIMITS.maxFileNameLength })),
  ...RECORDING_OPTIONS,
});

const PresignedUrls = Type.Array(
  Type.Object({
    part_number: PartNumber,
    url: Type.String({ description: 'Where to PUT this part; needs no API key.' }),
    expires_at: Type.Optional(
      Type.String({ description: 'When this URL expires, if earlier than the others. ISO 8601.' }),
    ),
  }),
);

export const InitiateResult = Type.Object(
  {
    request_id: RequestId,
    upload_id: Type.String(),
    presigned_urls: PresignedUrls,
    expires_at: Type.String({ description: 'When the URLs expire, ISO 8601.' }),
  },
  { $id: 'InitiateResult', description: 'Where to upload the parts of a recording.' },
);

export const UploadStatus = Type.Object(
  {
    request_id: RequestId,
    upload_id: Type.String(),
    status: Status,
    part_count: PartNumber,
    parts: Type.Array(
      Type.Object({
        PartNumber,
        ETag: Type.String({ description: 'Send it in the complete call.' }),
        bytes: Type.Integer(),
      }),
      { description: 'The parts received so far.' },
    ),
    presigned_urls: { ...PresignedUrls, description: 'Where to upload the missing parts.' },
    expires_at: Type.String({ description: 'ISO 8601.' }),
  },
  { $id: 'UploadStatus', description: 'The state of an interrupted upload.' },
);

export const CompleteBody = Type.Object(
  {
    request_id: RequestId,
    upload_id: Type.String({ minLength: 1, maxLength: 200 }),
    parts: Type.Array(
      Type.Object({
        PartNumber,
        ETag: Type.String({
          maxLength: 100,
          description: 'The ETag from the response to the part, including quotes.',
        }),
      }),
      { minItems: 1, maxItems: ASYNCH_LIMITS.maxParts },
    ),
  },
  { $id: 'CompleteBody' },
);

export const CompleteResult = Type.Object(
  { request_id: RequestId, status: Status },
  { $id: 'CompleteResult' },
);

export const PredictionQuery = Type.Object({
  request_id: RequestId,
  details: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Adds times, speech, all confidences and segments to the result.',
    }),
  ),
});

export const PendingResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Enum(['uploading', 'queued', 'processing'], { type: 'string', title: 'PendingStatus' }),
    progress: Progress,
  },
  { $id: 'PendingResult', description: 'The result is not ready yet.' },
);

const Seconds = Type.Number({ minimum: 0, description: 'Seconds from the start of the recording.' });
const SpeechSeconds = Type.Number({ minimum: 0, description: 'Seconds of speech.' });
const Channel = Type.Integer({ minimum: 0, maximum: ASYNCH_LIMITS.maxChannels - 1 });

export const TimelineElement = Type.Object(
  {
    t: Timestamp,
    channel: Type.Optional({ ...Channel, description: 'The channel, from 0; with `channels=separate`.' }),
    emotion: EmotionName,
    confidence: Confidence,
    start: Type.Optional({ ...Seconds, description: 'With `details`: start of the step, in seconds.' }),
    end: Type.Optional({ ...Seconds, description: 'With `details`: end of the step, in seconds.' }),
    speech_seconds: Type.Optional({
      ...SpeechSeconds,
      description: 'With `details`: seconds of speech in the step.',
    }),
    speech: Type.Optional(
      Type.Boolean({
        description: `With \`details\`: whether the step has at least ${MIN_SPEECH_SECONDS} s of speech. If false, ignore the emotion.`,
      }),
    ),
    all_predictions: Type.Optional(AllPredictions),
  },
  { description: 'The emotion of one step of a long recording.' },
);

export const Segment = Type.Object(
  {
    channel: { ...Channel, description: '0 if the channels were mixed.' },
    start: Seconds,
    end: Seconds,
    emotion: Type.Union([EmotionName, Type.Null()], { description: 'Null if there is no speech.' }),
    confidence: { ...Confidence, description: 'The mean over its steps, weighted by their duration.' },
    speech_seconds: SpeechSeconds,
  },
  { description: 'Consecutive steps of one channel with the same emotion, merged.' },
);

export const AsynchResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Literal('completed', { type: 'string' }),
    emotions: Type.Array(TimelineElement, { description: 'Ordered by time, then channel.' }),
    model: Type.Optional(Type.String({ description: 'With `details`: the model used.' })),
    weights: Type.Optional(Type.String({ description: 'With `details`: the weights of the model.' })),
    duration_seconds: Type.Optional(
      Type.Number({ description: 'With `details`: the length of the recording.' }),
    ),
    expires_at: Type.Optional(
      Type.String({ description: 'With `details`: when this result will be erased, ISO 8601.' }),
    ),
    segments: Type.Optional(Type.Array(Segment, { description: 'With `details`.' })),
  },
  { $id: 'AsynchResult', description: 'The timeline of a long recording.' },
);

export const ListQuery = Type.Object({
  status: Type.Optional({ ...Status, description: 'Only requests in this state.' }),
  limit: Type.Optional(
    Type.Integer({ minimum: LIST_LIMIT.min, maximum: LIST_LIMIT.max, default: LIST_LIMIT.default }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 200, description: 'The `next_cursor` of the previous page.' }),
  ),
});

export const RequestSummary = Type.Object({
  request_id: RequestId,
  label: Label,
  status: Status,
  progress: Progress,
  created_at: Type.String({ description: 'ISO 8601.' }),
  expires_at: Type.String({ description: 'ISO 8601.' }),
  duration_seconds: Type.Union([Type.Number(), Type.Null()], {
    description: 'Null until the recording has been decoded.',
  }),
});

export const RequestList = Type.Object(
  {
    requests: Type.Array(RequestSummary),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: 'Pass it as `cursor` for the next page; null on the last one.',
    }),
  },
  { $id: 'RequestList', description: 'The requests of this key, newest first.' },
);

export const WebhookSecret = Type.Object(
  {
    secret: Type.String({ pattern: '^whsec_', description: 'The signing secret for webhooks of this key.' }),
  },
  { $id: 'WebhookSecret' },
);

export const WebhookEvent = Type.Object(
  {
    type: Type.Enum(['request.completed', 'request.failed', 'request.expired'], {
      type: 'string',
      title: 'WebhookType',
    }),
    timestamp: Type.String({ description: 'Time of the event, ISO 8601.' }),
    data: Type.Object({
      request_id: RequestId,
      label: Label,
      status: Type.Enum(['completed', 'failed', 'expired'], { type: 'string', title: 'FinalStatus' }),
    }),
  },
  { $id: 'WebhookEvent', description: 'The body of a webhook. Fetch the result with its request_id.' },
);

export const StatusQuery = Type.Object({
  comprehensive_output: Type.Optional(
    Type.Boolean({ default: false, description: 'Adds `all_predictions` to every element.' }),
  ),
});

export const StatusResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Enum(['initiated', 'upload_completed', 'processing', 'completed', 'failed'], {
      type: 'string',
      title: 'ExistingClientStatus',
    }),
    progress: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    emotions: Type.Optional(
      Type.Array(
        Type.Object({
          t: Timestamp,
          channel: Type.Optional(Channel),
          timestamp: Seconds,
          start_time: Seconds,
          end_time: Seconds,
          emotion: EmotionName,
          confidence: Confidence,
          all_predictions: Type.Optional(AllPredictions),
        }),
        { description: 'If completed.' },
      ),
    ),
    error: Type.Optional(Type.String({ description: 'If failed: the reason.' })),
    error_code: Type.Optional(Type.String({ description: 'If failed: the error code, in upper case.' })),
  },
  { $id: 'StatusResult', description: 'A request in the format of existing second-generation clients.' },
);

const Limit = (description: string) =>
  Type.Union([Type.Integer(), Type.Null()], { description: `${description}; null means no limit.` });

export const RateLimitStatus = Type.Object(
  {
    policy_name: Type.String(),
    limits: Type.Object({
      requests_per_minute: Limit('Requests per minute'),
      max_audio_size_mb: Type.Integer(),
      max_audio_duration_seconds: Type.Integer(),
      max_concurrent_requests: Type.Integer({
        description: 'Concurrent short recordings, all keys together.',
      }),
      max_concurrent_streams: Limit('Open streams'),
    }),
    current_usage: Type.Object({
      requests_per_minute: Limit('Requests currently counted against the limit'),
      concurrent_streams: Type.Integer(),
    }),
  },
  { $id: 'RateLimitStatus', description: 'The limits of this key and their current usage.' },
);
