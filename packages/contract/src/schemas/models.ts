import { Type } from 'typebox';
import { EmotionName, ModelName } from './common.ts';

export const ModelFigures = Type.Object(
  {
    uar: Type.Number({ description: 'Unweighted average recall.' }),
    accuracy: Type.Number(),
    macro_f1: Type.Number(),
    ece: Type.Number({ description: 'Expected calibration error.' }),
    split: Type.String({ description: 'What it was measured on.' }),
    new_speakers: Type.Record(Type.String(), Type.Number(), {
      description: 'UAR by corpus: new speakers of the corpora that were trained on.',
    }),
    never_heard: Type.Record(Type.String(), Type.Number(), {
      description:
        'UAR by corpus: all speakers of corpora that were not trained on. Where these weights were trained on one, a model of a shorter run without it was measured.',
    }),
  },
  { additionalProperties: true, description: 'How well the model did on voices it had never heard.' },
);

export const ModelInfo = Type.Object({
  id: ModelName,
  default: Type.Boolean({ description: 'Whether this model answers when none is named.' }),
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
  { $id: 'ModelList', description: 'The models on offer and the weights behind them.' },
);
