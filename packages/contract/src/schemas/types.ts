// The types of the schemas, under the same names.
import type { Static } from 'typebox';
import type * as schema from './index.ts';

export type AllPredictions = Static<typeof schema.AllPredictions>;
export type DiscreteQuery = Static<typeof schema.DiscreteQuery>;
export type DiscreteResult = Static<typeof schema.DiscreteResult>;
export type ModelFigures = Static<typeof schema.ModelFigures>;
export type ModelInfo = Static<typeof schema.ModelInfo>;
export type ModelList = Static<typeof schema.ModelList>;
export type Problem = Static<typeof schema.Problem>;
export type SendQuery = Static<typeof schema.SendQuery>;
export type InitiateResult = Static<typeof schema.InitiateResult>;
export type UploadStatus = Static<typeof schema.UploadStatus>;
export type CompleteBody = Static<typeof schema.CompleteBody>;
export type CompleteResult = Static<typeof schema.CompleteResult>;
export type PendingResult = Static<typeof schema.PendingResult>;
export type TimelineElement = Static<typeof schema.TimelineElement>;
export type Segment = Static<typeof schema.Segment>;
export type AsynchResult = Static<typeof schema.AsynchResult>;
/** A step with `details=true`. */
export type DetailedElement = With<
  TimelineElement,
  'start' | 'end' | 'speech_seconds' | 'speech' | 'all_predictions'
>;
/** A result with `details=true`. */
export type DetailedResult = Omit<
  With<AsynchResult, 'model' | 'weights' | 'duration_seconds' | 'expires_at' | 'segments'>,
  'emotions'
> & { emotions: DetailedElement[] };
export type ListQuery = Static<typeof schema.ListQuery>;
export type RequestSummary = Static<typeof schema.RequestSummary>;
export type RequestList = Static<typeof schema.RequestList>;
export type WebhookSecret = Static<typeof schema.WebhookSecret>;
export type WebhookEvent = Static<typeof schema.WebhookEvent>;
export type StreamQuery = Static<typeof schema.StreamQuery>;
export type StreamReady = Static<typeof schema.StreamReady>;
export type StreamPrediction = Static<typeof schema.StreamPrediction>;
export type StreamError = Static<typeof schema.StreamError>;
export type StreamDone = Static<typeof schema.StreamDone>;
export type StatusResult = Static<typeof schema.StatusResult>;
export type TokenBody = Static<typeof schema.TokenBody>;
export type TokenResult = Static<typeof schema.TokenResult>;
export type RateLimitStatus = Static<typeof schema.RateLimitStatus>;

type With<T, K extends keyof T> = T & Required<Pick<T, K>>;
