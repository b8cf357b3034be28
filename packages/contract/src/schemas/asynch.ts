import { Type } from 'typebox';
import { CHANNEL_MODES, WEBHOOK_TYPES } from '../asynch.ts';
import { ASYNCH_LIMITS, LIST_LIMIT, MIN_SPEECH_SECONDS } from '../limits.ts';
import { PENDING_STATES, REQUEST_STATES } from '../states.ts';
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

const Status = Type.Enum([...REQUEST_STATES], { type: 'string' });

const Progress = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'The share of the present state that is done.',
});

const Label = Type.Union([Type.String(), Type.Null()], { description: "The caller's own name for it." });

/** What may be said about a recording, however it is sent. */
const RECORDING_OPTIONS = {
  model: Type.Optional(ModelName),
  interval: Type.Optional(IntervalSeconds),
  step: Type.Optional({ ...IntervalSeconds, description: 'The same as `interval`.' }),
  label: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: ASYNCH_LIMITS.maxLabelLength,
      description: 'Your own name for it, shown in lists and webhooks.',
    }),
  ),
  channels: Type.Optional(
    Type.Enum([...CHANNEL_MODES], {
      type: 'string',
      default: CHANNEL_MODES[0],
      description: `\`separate\` hears each channel apart, up to ${ASYNCH_LIMITS.maxChannels}.`,
    }),
  ),
  webhook_url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: ASYNCH_LIMITS.maxWebhookUrlLength,
      description: 'Where to tell that it is done (Standard Webhooks). https, and no private address.',
    }),
  ),
};

export const InitiateQuery = Type.Object({
  file_name: Type.String({ minLength: 1, maxLength: ASYNCH_LIMITS.maxFileNameLength }),
  part_count: PartNumber,
  ...RECORDING_OPTIONS,
});

/** Of a whole recording in one call. */
export const SendQuery = Type.Object({
  file_name: Type.Optional(Type.String({ maxLength: ASYNCH_LIMITS.maxFileNameLength })),
  ...RECORDING_OPTIONS,
});

const PresignedUrls = Type.Array(
  Type.Object({
    part_number: PartNumber,
    url: Type.String({ description: 'Where to PUT this part; no key is needed.' }),
    expires_at: Type.Optional(
      Type.String({ description: 'When this address stops working, where that is earlier. ISO 8601.' }),
    ),
  }),
);

export const InitiateResult = Type.Object(
  {
    request_id: RequestId,
    upload_id: Type.String(),
    presigned_urls: PresignedUrls,
    expires_at: Type.String({ description: 'When the addresses stop working, ISO 8601.' }),
  },
  { $id: 'InitiateResult', description: 'Where to send the parts of a recording.' },
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
        ETag: Type.String({ description: 'Name it in complete.' }),
        bytes: Type.Integer(),
      }),
      { description: 'What has arrived.' },
    ),
    presigned_urls: { ...PresignedUrls, description: 'Where to send the parts that are missing.' },
    expires_at: Type.String({ description: 'ISO 8601.' }),
  },
  { $id: 'UploadStatus', description: 'What an interrupted upload still needs.' },
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
          description: 'As the part was acknowledged with, quotes included.',
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
      description: 'Adds times, speech, all probabilities and segments to the answer.',
    }),
  ),
});

export const PendingResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Enum([...PENDING_STATES], { type: 'string' }),
    progress: Progress,
  },
  { $id: 'PendingResult', description: 'The result is still to come.' },
);

const Seconds = Type.Number({ minimum: 0, description: 'From the start of the recording.' });
const SpeechSeconds = Type.Number({ minimum: 0, description: 'How much of it is speech.' });
const Channel = Type.Integer({ minimum: 0, maximum: ASYNCH_LIMITS.maxChannels - 1 });

export const TimelineElement = Type.Object(
  {
    t: Timestamp,
    channel: Type.Optional({ ...Channel, description: 'With `channels=separate`.' }),
    emotion: EmotionName,
    confidence: Confidence,
    start: Type.Optional({ ...Seconds, description: 'With `details`: where the step begins, in seconds.' }),
    end: Type.Optional({ ...Seconds, description: 'With `details`: where it ends.' }),
    speech_seconds: Type.Optional({ ...SpeechSeconds, description: 'With `details`: speech in the step.' }),
    speech: Type.Optional(
      Type.Boolean({
        description: `With \`details\`: whether that is ${MIN_SPEECH_SECONDS} s or more. If not, the emotion says nothing.`,
      }),
    ),
    all_predictions: Type.Optional(AllPredictions),
  },
  { description: 'What one step of the recording was heard as. Ordered by time, then channel.' },
);

export const Segment = Type.Object(
  {
    channel: { ...Channel, description: '0 where channels were mixed.' },
    start: Seconds,
    end: Seconds,
    emotion: Type.Union([EmotionName, Type.Null()], { description: 'Null: no speech.' }),
    confidence: { ...Confidence, description: 'The mean over its steps, weighted by their length.' },
    speech_seconds: SpeechSeconds,
  },
  { description: 'Neighbouring steps of one channel with one emotion, joined.' },
);

export const AsynchResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Literal('completed', { type: 'string' }),
    emotions: Type.Array(TimelineElement),
    model: Type.Optional(Type.String({ description: 'With `details`: the model that answered.' })),
    weights: Type.Optional(Type.String({ description: 'With `details`: its weights.' })),
    duration_seconds: Type.Optional(
      Type.Number({ description: 'With `details`: how long the recording is.' }),
    ),
    expires_at: Type.Optional(
      Type.String({ description: 'With `details`: when this result is erased, ISO 8601.' }),
    ),
    segments: Type.Optional(Type.Array(Segment, { description: 'With `details`.' })),
  },
  { $id: 'AsynchResult', description: 'The time line of a recording.' },
);

export const ListQuery = Type.Object({
  status: Type.Optional({ ...Status, description: 'Only those in this state.' }),
  limit: Type.Optional(
    Type.Integer({ minimum: LIST_LIMIT.min, maximum: LIST_LIMIT.max, default: LIST_LIMIT.default }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 200, description: 'The `next_cursor` of the page before.' }),
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
    description: 'Null until the recording has been read.',
  }),
});

export const RequestList = Type.Object(
  {
    requests: Type.Array(RequestSummary),
    next_cursor: Type.Union([Type.String(), Type.Null()], { description: 'Null on the last page.' }),
  },
  { $id: 'RequestList', description: 'The requests of this key, newest first.' },
);

export const WebhookSecret = Type.Object(
  { secret: Type.String({ pattern: '^whsec_', description: 'What webhooks to this key are signed with.' }) },
  { $id: 'WebhookSecret' },
);

export const WebhookEvent = Type.Object(
  {
    type: Type.Enum([...WEBHOOK_TYPES], { type: 'string' }),
    timestamp: Type.String({ description: 'When it happened, ISO 8601.' }),
    data: Type.Object({
      request_id: RequestId,
      label: Label,
      status: Type.Enum(['completed', 'failed'], { type: 'string' }),
    }),
  },
  { $id: 'WebhookEvent', description: 'What a webhook is sent. Ask for the result with the request_id.' },
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
        { description: 'When completed.' },
      ),
    ),
    error: Type.Optional(Type.String({ description: 'When failed: why.' })),
    error_code: Type.Optional(
      Type.String({ description: 'When failed: the code of the cause, in capitals.' }),
    ),
  },
  { $id: 'StatusResult', description: 'A request as the second generation of existing clients reads it.' },
);

const Limit = (description: string) =>
  Type.Union([Type.Integer(), Type.Null()], { description: `${description}; null is no limit.` });

export const RateLimitStatus = Type.Object(
  {
    policy_name: Type.String(),
    limits: Type.Object({
      requests_per_minute: Limit('Requests a minute'),
      max_audio_size_mb: Type.Integer(),
      max_audio_duration_seconds: Type.Integer(),
      max_concurrent_requests: Type.Integer({ description: 'Short recordings in flight, of all keys.' }),
      max_concurrent_streams: Limit('Open streams'),
    }),
    current_usage: Type.Object({
      requests_per_minute: Limit('Requests that the limit counts now'),
      concurrent_streams: Type.Integer(),
    }),
  },
  { $id: 'RateLimitStatus', description: 'What this key may do, and what it is doing.' },
);
