import { Type } from 'typebox';
import { ADVISED_MIN_CONFIDENCE, DEFAULT_MODEL, EMOTIONS, MODEL_IDS } from '../emotions.ts';
import { INTERVAL_SECONDS } from '../limits.ts';

// In the OpenAPI document, an enum with a title is a schema of that name: generated clients have one readable type for it.
export const EmotionName = Type.Enum([...EMOTIONS], {
  type: 'string',
  title: 'Emotion',
  description: 'The name of an emotion.',
});

export const ModelName = Type.Enum([...MODEL_IDS], {
  type: 'string',
  title: 'ModelId',
  default: DEFAULT_MODEL,
  description:
    'The model to use: `5emotions` adds nervous; `7emotions` adds nervous, surprised and disgusted.',
});

export const Confidence = Type.Number({
  minimum: 0,
  maximum: 1,
  description: `A calibrated probability. Below ${ADVISED_MIN_CONFIDENCE}, treat the emotion as unsure.`,
});

const Share = Type.Number({ minimum: 0, maximum: 1 });
const OptionalShare = Type.Optional(Share);

export const AllPredictions = Type.Object(
  {
    angry: Share,
    happy: Share,
    neutral: Share,
    sad: Share,
    nervous: OptionalShare,
    surprised: OptionalShare,
    disgusted: OptionalShare,
  },
  {
    additionalProperties: false,
    description: 'The confidence of each emotion of the model; they add up to 1.',
  },
);

export const Timestamp = Type.String({
  pattern: '^[0-9]{2,}:[0-5][0-9]$',
  description: 'Minutes and seconds from the start, as in `00:05`; minutes count on past 99.',
});

export const RequestId = Type.String({
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  description: 'The ID of an asynch request, a UUID.',
});

export const IntervalSeconds = Type.Integer({
  minimum: INTERVAL_SECONDS.min,
  maximum: INTERVAL_SECONDS.max,
  description: `Seconds between two predictions; ${INTERVAL_SECONDS.default} by default.`,
});
