// Kills the real server again and again: nothing that was acknowledged may be lost. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { surviveKills } from '../../packages/server/test/asynch/support/crashes.ts';
import { ServerProcess } from '../../packages/server/test/asynch/support/server-process.ts';
import { Random } from '../../packages/server/test/support/random.ts';
import { describeMachine } from '../support/report.ts';

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
});
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-recovery-'));
try {
  const random = new Random(Number(values.seed));
  const report = await surviveKills(new ServerProcess(dataDir), Number(values.kills), random, (line) =>
    console.log(line),
  );
  console.log(JSON.stringify({ machine: describeMachine(), ...report }));
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
