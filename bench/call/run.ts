// A long stereo call, one angry and one sad speaker, each on a channel of their own: are both heard? See ../README.md.
import { parseArgs } from 'node:util';
import {
  API_KEY_HEADER,
  ASYNCH_PATHS,
  type CompleteResult,
  type DetailedResult,
  PATHS,
} from '@undertone/contract';
import { stereoCall } from '@undertone/testing/stereo-call';
import { result } from '../asynch/upload.ts';
import { describeMachine, Limits } from '../support/report.ts';
import { startServerProcess } from '../support/server-process.ts';

const RIGHT_SHARE = 0.9;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const seconds = 60 * Number(values.minutes);
const limits = new Limits();
console.log(`${describeMachine()}\n${values.minutes} minutes, two channels, speakers in turn\n`);
const server = await startServerProcess();
try {
  const headers = { [API_KEY_HEADER]: server.key };
  const { file } = await stereoCall(seconds);
  const sent = await fetch(`${server.url}${PATHS.asynch}${ASYNCH_PATHS.requests}?channels=separate`, {
    method: 'POST',
    headers,
    body: file,
  });
  const { request_id } = (await sent.json()) as CompleteResult;
  await result(server, request_id);
  const query = `?request_id=${request_id}&details=true`;
  const answer = await fetch(server.url + PATHS.asynch + ASYNCH_PATHS.prediction + query, { headers });
  const { emotions, duration_seconds, segments } = (await answer.json()) as DetailedResult;
  if (duration_seconds !== seconds) limits.miss(`it lasts ${duration_seconds} s`);
  for (const [channel, expected] of ['angry', 'sad'].entries()) {
    const steps = emotions.filter((element) => element.channel === channel);
    const spoken = steps.filter(({ speech }) => speech);
    const right = spoken.filter(({ emotion }) => emotion === expected).length;
    console.log(
      `channel ${channel} (${expected}): ${steps.length} steps, ${spoken.length} with speech, ${right} of them right; ` +
        `${segments.filter((segment) => segment.channel === channel).length} segments`,
    );
    limits.atLeast(`channel ${channel}`, right / spoken.length, RIGHT_SHARE, ' of the steps with speech');
    limits.atLeast(`speech on channel ${channel}`, spoken.length, steps.length / 3, ' steps');
  }
} finally {
  await server.stop();
}
limits.conclude();
