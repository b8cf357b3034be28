import { Type } from 'typebox';
import { DEFAULT_MODEL, EMOTIONS, MODEL_IDS } from '../emotions.ts';
import { INTERVAL_SECONDS } from '../limits.ts';

export const EmotionName = Type.Enum([...EMOTIONS], {
  type: 'string',
  description: 'The name of an emotion.',
});

export const ModelName = Type.Enum([...MODEL_IDS], {
  type: 'string',
  default: DEFAULT_MODEL,
  description:
    'Which model answers: `5emotions` adds nervous; `7emotions` adds nervous, surprised, disgusted.',
});

export const Confidence = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'A calibrated probability.',
});

const otherEmotion = Type.Optional(Confidence);

export const AllPredictions = Type.Object(
  {
    angry: Confidence,
    happy: Confidence,
    neutral: Confidence,
    sad: Confidence,
    nervous: otherEmotion,
    surprised: otherEmotion,
    disgusted: otherEmotion,
  },
  {
    additionalProperties: false,
    description: 'One entry for each emotion of the model in use; together they make 1.',
  },
);

export const Timestamp = Type.String({
  pattern: '^[0-9]{2,}:[0-5][0-9]$',
  description: 'Minutes and seconds from the start; minutes count on past 99.',
});

export const RequestId = Type.String({
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  description: 'The identifier of an asynch request, a UUID.',
});

export const IntervalSeconds = Type.Integer({
  minimum: INTERVAL_SECONDS.min,
  maximum: INTERVAL_SECONDS.max,
  description: `Seconds between two classifications (beta); ${INTERVAL_SECONDS.default} when not given.`,
});
