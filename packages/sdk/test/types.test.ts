// The published types are written by hand; the compiler holds them to the contract's schemas here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type * as contract from '@undertone/contract';
import { RequestId } from '@undertone/contract/schemas';
import { checkRequestId } from '../src/asynch/poll.ts';
import type * as sdk from '../src/types.ts';
import { readCases } from './support/cases.ts';

/** `true` when each can be used as the other. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

const same: {
  Emotion: Same<sdk.Emotion, contract.Emotion>;
  ModelId: Same<sdk.ModelId, contract.ModelId>;
  DiscreteResult: Same<sdk.DiscreteResult, contract.DiscreteResult>;
  TimelineElement: Same<sdk.TimelineElement, contract.TimelineElement>;
  AsynchResult: Same<sdk.AsynchResult, contract.AsynchResult>;
  ModelList: Same<sdk.ModelList, contract.ModelList>;
  Problem: Same<Omit<sdk.Problem, 'code'>, Omit<contract.Problem, 'code'>>;
} = {
  Emotion: true,
  ModelId: true,
  DiscreteResult: true,
  TimelineElement: true,
  AsynchResult: true,
  ModelList: true,
  Problem: true,
};

test('the published types are those of the contract', () => {
  assert(Object.values(same).every(Boolean));
});

test('what the client takes for a request_id is what the service takes', async () => {
  const pattern = new RegExp((RequestId as unknown as { pattern: string }).pattern);
  const { accepts, refuses } = (await readCases()).requestIds;
  for (const id of accepts) {
    checkRequestId(id);
    assert.match(id, pattern);
  }
  for (const id of refuses.filter((each) => typeof each === 'string')) assert.doesNotMatch(id, pattern);
});
