import { Type } from 'typebox';
import { ERROR_CODES } from '../errors.ts';
import { SAMPLE_RATE, STREAM_LIMITS } from '../limits.ts';
import { STREAM_ENCODINGS } from '../streams.ts';
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
  title: 'StreamEncoding',
  default: STREAM_ENCODINGS[0],
  description: 'The encoding of each sample.',
});
const Channels = Type.Integer({
  minimum: 1,
  maximum: maxChannels,
  default: 1,
  description: 'Interleaved; each channel is analysed separately.',
});
const Interval = Type.Integer({
  minimum: intervalSeconds.min,
  maximum: intervalSeconds.max,
  default: intervalSeconds.default,
  description: 'Seconds between two predictions.',
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
    session_id: Type.String({
      description: 'The ID of this stream in the logs. Quote it when you ask for help.',
    }),
    model: ModelName,
    sample_rate: SampleRate,
    encoding: Encoding,
    channels: Channels,
    interval: Interval,
  },
  { $id: 'StreamReady', description: 'The first message: the audio format the server expects.' },
);

export const StreamPrediction = Type.Object(
  {
    type: Type.Literal('prediction'),
    t: Timestamp,
    start: Type.Number({ description: 'Start of the window, in seconds from the start of the stream.' }),
    end: Type.Number({ description: 'End of the window, in seconds.' }),
    channel: Type.Integer({ minimum: 0, maximum: maxChannels - 1 }),
    main_emotion: EmotionName,
    confidence: Confidence,
    all_predictions: AllPredictions,
    speech_seconds: Type.Number({ description: 'Seconds of speech in the window.' }),
  },
  { $id: 'StreamPrediction', description: 'The emotion in the last 5 seconds of one channel.' },
);

export const StreamError = Type.Object(
  {
    type: Type.Literal('error'),
    code: Type.Enum([...ERROR_CODES, 'going_away'], { type: 'string', title: 'StreamErrorCode' }),
    detail: Type.String({ description: 'What happened and what to do next.' }),
  },
  { $id: 'StreamError', description: 'The last message before the server closes an unfinished stream.' },
);

export const StreamDone = Type.Object(
  { type: Type.Literal('done'), duration_seconds: Type.Number() },
  { $id: 'StreamDone', description: 'The last message after `end`.' },
);

export const StreamEnd = Type.Object(
  { type: Type.Literal('end') },
  { $id: 'StreamEnd', description: 'The only text message a client sends: the audio is complete.' },
);
