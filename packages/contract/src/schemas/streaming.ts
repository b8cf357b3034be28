import { Type } from 'typebox';
import { ERROR_CODES } from '../errors.ts';
import { SAMPLE_RATE } from '../limits.ts';
import { AllPredictions, Confidence, EmotionName, IntervalSeconds, ModelName, Timestamp } from './common.ts';

const StreamSampleRate = Type.Integer({
  minimum: SAMPLE_RATE.min,
  maximum: SAMPLE_RATE.max,
  description: 'Of the samples that follow, in hertz.',
});

export const StreamQuery = Type.Object({
  model: Type.Optional(ModelName),
  sample_rate: StreamSampleRate,
  interval: Type.Optional(IntervalSeconds),
  encoding: Type.Optional(Type.Literal('pcm_s16le', { type: 'string', default: 'pcm_s16le' })),
});

export const StreamPrediction = Type.Object({
  type: Type.Literal('prediction'),
  t: Timestamp,
  start: Type.Number({ minimum: 0, description: 'Seconds from the start of the stream.' }),
  end: Type.Number({ minimum: 0, description: 'Seconds from the start of the stream.' }),
  main_emotion: EmotionName,
  confidence: Confidence,
  all_predictions: AllPredictions,
});

export const StreamError = Type.Object({
  type: Type.Literal('error'),
  code: Type.Enum([...ERROR_CODES], { type: 'string' }),
  title: Type.String(),
  detail: Type.String(),
});

/** What the server sends over the WebSocket. */
export const StreamServerMessage = Type.Union([StreamPrediction, StreamError]);

/** The one text message a client sends: no more audio follows, classify what is left. */
export const StreamEnd = Type.Object({ type: Type.Literal('end') });

/** The Socket.IO event `message` carries this as a JSON string. */
export const SocketMessage = Type.Object({
  service: Type.Literal('emotion'),
  action: Type.Literal('prediction'),
  model: Type.Optional(ModelName),
  sample_rate: StreamSampleRate,
  payload: Type.String({ description: 'Base64 of signed 16-bit little-endian samples.' }),
});

export const SocketConnected = Type.Object({ session_id: Type.String() });
