// Kills the real server again and again: nothing that was acknowledged may be lost. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { killed, surviveFaults } from '@undertone/testing/crashes';
import { Random } from '@undertone/testing/random';
import { ServerProcess } from '@undertone/testing/server-process';
import { describeMachine } from '../support/report.ts';
import { halfHours } from './half-hours.ts';
import { SeveralMachines } from './several-machines.ts';

const { values } = parseArgs({
  options: {
    /** How often something breaks. */
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    /** Two API processes and two workers over PostgreSQL and S3, any of which but S3 may break. Both or neither. */
    postgres: { type: 'boolean', default: false },
    s3: { type: 'boolean', default: false },
    /** Half-hour recordings before that, while each of these things breaks once. */
    recordings: { type: 'string', default: '6' },
  },
});
if (values.postgres !== values.s3) throw new Error('Several processes share both: give --postgres and --s3.');
const random = new Random(Number(values.seed));
const say = (line: string) => console.log(line);
say(describeMachine());
if (values.postgres) {
  await halfHours(Number(values.recordings), random, say);
  say(
    JSON.stringify(await surviveFaults(await SeveralMachines.prepare(), Number(values.kills), random, say)),
  );
} else {
  const dataDir = await mkdtemp(join(tmpdir(), 'undertone-recovery-'));
  try {
    const victim = killed(new ServerProcess(dataDir));
    say(JSON.stringify(await surviveFaults(victim, Number(values.kills), random, say)));
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}
