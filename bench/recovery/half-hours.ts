import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AsynchResult } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { nothingLeft, same } from '@undertone/testing/crashes';
import type { Random } from '@undertone/testing/random';
import { longWav } from '@undertone/testing/wav';
import { FAULTS, SeveralMachines } from './several-machines.ts';

const SECONDS = 1_800;
const WITHIN_MS = 20 * 60_000;

/** Uploads half hours to both API processes; while they are processed each thing fails once. All results must be the same. */
export async function halfHours(
  recordings: number,
  random: Random,
  say: (line: string) => void,
): Promise<void> {
  const machines = await SeveralMachines.prepare();
  await machines.start();
  try {
    const client = () => new AsynchClient(machines.url, machines.key);
    const recording = longWav(SECONDS);
    const start = performance.now();
    const ids: string[] = [];
    for (let i = 0; i < recordings; i++) ids.push(await client().upload(recording, 6));
    for (const fault of FAULTS) {
      await sleep(2_000);
      await machines.break(fault, random);
    }
    const results: AsynchResult['emotions'][] = [];
    for (const id of ids) {
      const response = await client().settled(id, WITHIN_MS);
      assert.equal(response.status, 200, await response.clone().text());
      results.push(((await response.json()) as AsynchResult).emotions);
    }
    assert.equal(results[0]?.length, SECONDS / 5);
    for (const emotions of results) same(emotions, results[0] ?? []);
    await nothingLeft(machines);
    const seconds = Math.round((performance.now() - start) / 1000);
    say(
      `${recordings} half-hour recordings while ${FAULTS.join(', ')} failed: all finished with the same result, in ${seconds} s.`,
    );
  } finally {
    await machines.end();
  }
}
