import { Type } from 'typebox';
import { EmotionName, ModelName } from './common.ts';

export const ModelFigures = Type.Object(
  {
    uar: Type.Number({ description: 'Unweighted average recall.' }),
    accuracy: Type.Number(),
    macro_f1: Type.Number(),
    ece: Type.Number({ description: 'Expected calibration error.' }),
    split: Type.String({ description: 'The data it was measured on.' }),
    new_speakers: Type.Record(Type.String(), Type.Number(), {
      description: 'UAR by corpus, for new speakers of the training corpora.',
    }),
    never_heard: Type.Record(Type.String(), Type.Number(), {
      description:
        'UAR by corpus, for corpora outside the training data. If these weights were trained on the corpus, the figure is that of a shorter training run without it.',
    }),
  },
  {
    additionalProperties: true,
    description: 'Quality of the model on voices it never heard; values from 0 to 1.',
  },
);

export const ModelInfo = Type.Object({
  id: ModelName,
  default: Type.Boolean({ description: 'Whether this model is used when a request names none.' }),
  emotions: Type.Array(EmotionName),
  figures: Type.Union([ModelFigures, Type.Null()]),
});

export const ModelList = Type.Object(
  {
    version: Type.String(),
    weights: Type.Object({
      id: Type.String({ description: 'The name of the weights, such as `research` or `open`.' }),
      licence: Type.String(),
      commercial_use: Type.Boolean(),
      summary: Type.String(),
    }),
    models: Type.Array(ModelInfo),
  },
  { $id: 'ModelList', description: 'The models of this server and their weights.' },
);
