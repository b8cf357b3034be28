import { Type } from 'typebox';
import { DISCRETE_LIMITS } from '../limits.ts';
import { AllPredictions, Confidence, EmotionName, ModelName } from './common.ts';

export const DiscreteQuery = Type.Object({
  model: Type.Optional(ModelName),
  details: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Adds the model, the weights, lengths and the request id to the answer.',
    }),
  ),
  channels: Type.Optional(Type.String({ description: 'Not here: see the asynch interface.' })),
});

export const DiscreteResult = Type.Object(
  {
    main_emotion: EmotionName,
    confidence: Confidence,
    all_predictions: AllPredictions,
    model: Type.Optional(Type.String({ description: 'With `details`: the model that answered.' })),
    weights: Type.Optional(Type.String({ description: 'With `details`: its weights.' })),
    duration_seconds: Type.Optional(
      Type.Number({ description: 'With `details`: how long the recording is.' }),
    ),
    speech_seconds: Type.Optional(Type.Number({ description: 'With `details`: how much of it is speech.' })),
    request_id: Type.Optional(
      Type.String({ description: 'With `details`: the same as the header `x-request-id`.' }),
    ),
  },
  {
    $id: 'DiscreteResult',
    additionalProperties: false,
    description:
      'The emotion of one short recording. `main_emotion` is the key of `all_predictions` with the highest value.',
  },
);

const Sample = Type.Number({
  minimum: -DISCRETE_LIMITS.maxSampleMagnitude,
  maximum: DISCRETE_LIMITS.maxSampleMagnitude,
});

/** The prepared samples of one clip: the plain form of the JSON input. */
export const DiscretePayload = Type.Object(
  {
    payload: Type.Array(Type.Array(Sample), {
      minItems: 1,
      maxItems: 1,
      description: 'One array holding the samples: mono, 44,100 Hz, 4 to 10 seconds of them.',
    }),
  },
  { $id: 'DiscretePayload', description: 'Prepared audio samples.' },
);
