import { Type } from 'typebox';
import { DISCRETE_LIMITS, MIN_SPEECH_SECONDS } from '../limits.ts';
import { AllPredictions, Confidence, EmotionName, ModelName } from './common.ts';

export const DiscreteQuery = Type.Object({
  model: Type.Optional(ModelName),
  details: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Adds the model, its weights, durations and the request ID to the result.',
    }),
  ),
  channels: Type.Optional(Type.String({ description: 'Not supported here: use the asynch interface.' })),
});

export const DiscreteResult = Type.Object(
  {
    main_emotion: EmotionName,
    confidence: Confidence,
    all_predictions: AllPredictions,
    model: Type.Optional(Type.String({ description: 'With `details`: the model used.' })),
    weights: Type.Optional(Type.String({ description: 'With `details`: the weights of the model.' })),
    duration_seconds: Type.Optional(
      Type.Number({ description: 'With `details`: the length of the recording.' }),
    ),
    speech_seconds: Type.Optional(
      Type.Number({
        description: `With \`details\`: seconds of speech. Below ${MIN_SPEECH_SECONDS} s there is almost no speech.`,
      }),
    ),
    request_id: Type.Optional(
      Type.String({
        description: 'With `details`: same as the header `x-request-id`. Quote it when you ask for help.',
      }),
    ),
  },
  {
    $id: 'DiscreteResult',
    additionalProperties: false,
    description: 'The emotion of one short recording.',
  },
);

const Sample = Type.Number({
  minimum: -DISCRETE_LIMITS.maxSampleMagnitude,
  maximum: DISCRETE_LIMITS.maxSampleMagnitude,
});

export const DiscretePayload = Type.Object(
  {
    payload: Type.Array(Type.Array(Sample), {
      minItems: 1,
      maxItems: 1,
      description: 'One array of samples: mono, 44,100 Hz, 4 to 10 seconds.',
    }),
  },
  { $id: 'DiscretePayload', description: 'Decoded audio samples.' },
);
