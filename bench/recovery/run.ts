// Kills the real server again and again: nothing that was acknowledged may be lost. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { killed, surviveFaults } from '@undertone/testing/crashes';
import { Random } from '@undertone/testing/random';
import { ServerProcess } from '@undertone/testing/server-process';
import { Receiver } from '@undertone/testing/webhook-receiver';
import { describeMachine } from '../support/report.ts';
import { SeveralMachines } from './several-machines.ts';

const { values } = parseArgs({
  options: {
    /** Number of faults. */
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    /** Two API processes and two workers over PostgreSQL and S3. Everything but S3 may fail. Give both or neither. */
    postgres: { type: 'boolean', default: false },
    s3: { type: 'boolean', default: false },
  },
});
if (values.postgres !== values.s3) throw new Error('Several processes share both: give --postgres and --s3.');
const random = new Random(Number(values.seed));
const chance = new Random(Number(values.seed));
const say = (line: string) => console.log(line);

/** Half of the first two attempts for each webhook fail; later ones are accepted, so that the bench ends. */
const receiver = await Receiver.start((_, attempt) =>
  attempt < 3 && chance.next() < 0.5 ? chance.pick([500, 'hang', 'reset'] as const) : 204,
);
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-recovery-'));
const env = { SERVICE_WEBHOOK_PRIVATE: 'true' };
say(describeMachine());
try {
  const victim = values.postgres
    ? await SeveralMachines.prepare(env)
    : killed(new ServerProcess(dataDir, env));
  const report = await surviveFaults(victim, Number(values.kills), random, { say, receiver });
  say(JSON.stringify({ ...report, webhooks: receiver.taken.size, attempts: receiver.received.length }));
} finally {
  await receiver.stop();
  await rm(dataDir, { recursive: true, force: true });
}
