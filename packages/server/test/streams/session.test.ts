import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedClassifier } from '@undertone/testing/app';
import { HeldBytes } from '../../src/held-bytes.ts';
import { createLogger } from '../../src/index.ts';
import { Metrics } from '../../src/operators/metrics.ts';
import { ProblemError } from '../../src/problems.ts';
import { STREAM_TIMES, StreamSession } from '../../src/streams/session.ts';

class BrokenSession extends StreamSession {
  protected override startClose(): void {
    throw new Error('the socket is in no state to be closed');
  }
  protected override terminate(): void {
    this.connectionClosed();
  }
}

test('a stream that cannot be closed when its key is refused is cut, and the server goes on', async () => {
  const metrics = new Metrics();
  const log: string[] = [];
  const session = new BrokenSession({
    classifier: await sharedClassifier(),
    metrics,
    recheckKey: () => Promise.reject(new ProblemError('invalid_api_key', 'It was revoked.')),
    addAudio: async () => undefined,
    memory: new HeldBytes(1).hold('somebody'),
    logger: createLogger('info', { write: (line: string) => log.push(line) }),
    times: { ...STREAM_TIMES, recheckMs: 5 },
  });
  await session.closed;
  assert.match(log.join(''), /in no state.*could not be closed; cutting its connection/);
  metrics.close();
});
