// The published declarations are written out from the contract's schemas. package.test.ts compiles this file against the
// packed package, so that the compiler compares them with what TypeBox makes of the same schemas.
import type * as contract from '@undertone/contract';
import type * as sdk from '@undertone/sdk';

/** Refused by the compiler unless every `From` can be used as a `To`. */
type Fits<From extends To, To> = [From, To];
type Same<A extends B, B extends C, C = A> = [A, B, C];

export type Unchanged = [
  Same<sdk.Emotion, contract.Emotion>,
  Same<sdk.ModelId, contract.ModelId>,
  Same<sdk.ChannelMode, contract.ChannelMode>,
  Same<sdk.StreamEncoding, contract.StreamEncoding>,
  Same<sdk.RequestStatus, contract.RequestState>,
  Same<sdk.AllPredictions, contract.AllPredictions>,
  Same<sdk.TimelineElement, contract.TimelineElement>,
  Same<sdk.Segment, contract.Segment>,
  Same<sdk.AsynchResult, contract.AsynchResult>,
  Same<sdk.RequestSummary, contract.RequestSummary>,
  Same<sdk.RequestList, contract.RequestList>,
  Same<sdk.ModelFigures, contract.ModelFigures>,
  Same<sdk.ModelList, contract.ModelList>,
];

export type Extended = [
  Fits<contract.DiscreteResult, sdk.DiscreteResult>,
  Fits<contract.Problem, sdk.Problem>,
  Fits<contract.StreamPrediction, sdk.StreamPrediction>,
  Same<Exclude<keyof sdk.DiscreteResult, 'speechSeconds'>, keyof contract.DiscreteResult>,
  Same<keyof sdk.Problem, keyof contract.Problem>,
  Same<keyof sdk.StreamPrediction | 'type', keyof contract.StreamPrediction>,
];

export type TheCheckItself = [
  // @ts-expect-error a timeline is not the answer for a short recording
  Fits<contract.AsynchResult, sdk.DiscreteResult>,
  // @ts-expect-error a model is not an emotion
  Fits<sdk.ModelId, contract.Emotion>,
  // @ts-expect-error one direction is not enough
  Same<'angry', contract.Emotion>,
];
