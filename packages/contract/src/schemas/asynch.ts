import { Type } from 'typebox';
import { ASYNCH_LIMITS } from '../limits.ts';
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

export const InitiateQuery = Type.Object({
  file_name: Type.String({ minLength: 1, maxLength: ASYNCH_LIMITS.maxFileNameLength }),
  part_count: PartNumber,
  model: Type.Optional(ModelName),
  interval: Type.Optional(IntervalSeconds),
});

export const InitiateResult = Type.Object(
  {
    request_id: RequestId,
    upload_id: Type.String(),
    presigned_urls: Type.Array(
      Type.Object({
        part_number: PartNumber,
        url: Type.String({ description: 'Where to PUT this part; no key is needed.' }),
        expires_at: Type.Optional(
          Type.String({ description: 'When this address stops working, where that is earlier. ISO 8601.' }),
        ),
      }),
    ),
    expires_at: Type.String({ description: 'When the addresses stop working, ISO 8601.' }),
  },
  { $id: 'InitiateResult', description: 'Where to send the parts of a recording.' },
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
  { request_id: RequestId, status: Type.Enum([...REQUEST_STATES], { type: 'string' }) },
  { $id: 'CompleteResult' },
);

export const PredictionQuery = Type.Object({ request_id: RequestId });

export const PendingResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Enum([...PENDING_STATES], { type: 'string' }),
    progress: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'The share of the present state that is done.',
    }),
  },
  { $id: 'PendingResult', description: 'The result is still to come.' },
);

export const TimelineElement = Type.Object(
  { t: Timestamp, emotion: EmotionName, confidence: Confidence },
  { description: 'What one step of the recording was heard as.' },
);

export const AsynchResult = Type.Object(
  {
    request_id: RequestId,
    status: Type.Literal('completed', { type: 'string' }),
    emotions: Type.Array(TimelineElement),
  },
  { $id: 'AsynchResult', description: 'The time line of a recording.' },
);

const Seconds = Type.Number({ minimum: 0, description: 'From the start of the recording.' });

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
