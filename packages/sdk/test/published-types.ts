// The published types are written by hand; the compiler (`make check`) compares them with the contract's schemas here.
import type * as contract from '@undertone/contract';
import type * as sdk from '../src/types.ts';

/** Refused by the compiler unless every `From` can be used as a `To`. */
type Fits<From extends To, To> = [From, To];

export type WhatTheServiceAnswers = [
  Fits<contract.Emotion, sdk.Emotion>,
  Fits<contract.DiscreteResult, sdk.DiscreteResult>,
  Fits<contract.TimelineElement, sdk.TimelineElement>,
  Fits<contract.AsynchResult, sdk.AsynchResult>,
  Fits<contract.ModelList, sdk.ModelList>,
  Fits<contract.Problem, sdk.Problem>,
];

/** Nothing is published that the service never answers with. */
export type WhatUsersRelyOn = [
  Fits<sdk.Emotion, contract.Emotion>,
  Fits<keyof sdk.TimelineElement, keyof contract.TimelineElement>,
  Fits<keyof sdk.AsynchResult, keyof contract.AsynchResult>,
  Fits<keyof sdk.ModelList, keyof contract.ModelList>,
];

export type WhatUsersChoose = [Fits<sdk.ModelId, contract.ModelId>, Fits<contract.ModelId, sdk.ModelId>];

export type TheCheckItself = [
  // @ts-expect-error a time line is not the answer for a short recording
  Fits<contract.AsynchResult, sdk.DiscreteResult>,
  // @ts-expect-error a model is not an emotion
  Fits<sdk.ModelId, contract.Emotion>,
];
