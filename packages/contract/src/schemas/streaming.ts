import { Type } from 'typebox';
import { ERROR_CODES } from '../errors.ts';
import { SAMPLE_RATE, STREAM_LIMITS } from '../limits.ts';
import { STREAM_ENCODINGS } from '../streaming.ts';
import { AllPredictions, Confidence, EmotionName, ModelName, Timestamp } from './common.ts';

const { intervalSeconds, maxChannels } = STREAM_LIMITS;

const SampleRate = Type.Integer({
  minimum: SAMPLE_RATE.min,
  maximum: SAMPLE_RATE.max,
  default: SAMPLE_RATE.ideal,
  description: 'Hertz.',
});
const Encoding = Type.Enum([...STREAM_ENCODINGS], {
  type: 'string',
  default: STREAM_ENCODINGS[0],
  description: 'How each sample is written.',
});
const Channels = Type.Integer({
  minimum: 1,
  maximum: maxChannels,
  default: 1,
  description: 'Interleaved; each is heard apart.',
});
const Interval = Type.Integer({
  minimum: intervalSeconds.min,
  maximum: intervalSeconds.max,
  default: intervalSeconds.default,
  description: 'Seconds between two answers.',
});

export const StreamQuery = Type.Object({
  model: Type.Optional(ModelName),
  sample_rate: Type.Optional(SampleRate),
  encoding: Type.Optional(Encoding),
  channels: Type.Optional(Channels),
  interval: Type.Optional(Interval),
});

export const StreamReady = Type.Object(
  {
    type: Type.Literal('ready'),
    session_id: Type.String({ description: 'Names this stream in logs and in questions to the operator.' }),
    model: ModelName,
    sample_rate: SampleRate,
    encoding: Encoding,
    channels: Channels,
    interval: Interval,
  },
  { $id: 'StreamReady', description: 'The first message: what the server takes the audio to be.' },
);

export const StreamPrediction = Type.Object(
  {
    type: Type.Literal('prediction'),
    t: Timestamp,
    start: Type.Number({ description: 'Where the window begins, in seconds from the start of the stream.' }),
    end: Type.Number({ description: 'Where it ends.' }),
    channel: Type.Integer({ minimum: 0, maximum: maxChannels - 1 }),
    main_emotion: EmotionName,
    confidence: Confidence,
    all_predictions: AllPredictions,
    speech_seconds: Type.Number({ description: 'How much of the window is speech.' }),
  },
  { $id: 'StreamPrediction', description: 'The emotion in the last 5 seconds of one channel.' },
);

export const StreamError = Type.Object(
  {
    type: Type.Literal('error'),
    code: Type.Enum([...ERROR_CODES, 'going_away'], { type: 'string' }),
    detail: Type.String({ description: 'What happened, and what to do next.' }),
  },
  { $id: 'StreamError', description: 'The last message before the server closes a stream that is not done.' },
);

export const StreamDone = Type.Object(
  { type: Type.Literal('done'), duration_seconds: Type.Number() },
  { $id: 'StreamDone', description: 'The last message after `end`.' },
);

export const StreamEnd = Type.Object(
  { type: Type.Literal('end') },
  { $id: 'StreamEnd', description: 'The only text a client sends: there is no more audio.' },
);
