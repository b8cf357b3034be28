import { Type } from 'typebox';
import { DISCRETE_LIMITS } from '../limits.ts';
import { AllPredictions, Confidence, EmotionName, ModelName } from './common.ts';

export const DiscreteQuery = Type.Object({ model: Type.Optional(ModelName) });

export const DiscreteResult = Type.Object(
  {
    main_emotion: EmotionName,
    confidence: Confidence,
    all_predictions: AllPredictions,
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
