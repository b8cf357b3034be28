import { Type } from 'typebox';
import { ASYNCH_LIMITS } from '../limits.ts';
import { PENDING_STATES, REQUEST_STATES } from '../states.ts';
import { Confidence, EmotionName, IntervalSeconds, ModelName, RequestId, Timestamp } from './common.ts';

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
