import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { EmotionClient } from '@undertone/sdk';
import { describeMachine, Limits } from '../support/report.ts';
import { startServerProcess } from '../support/server-process.ts';

const MIB = 2 ** 20;
const UNDERTONE = fileURLToPath(new URL('../../packages/cli/bin/undertone.js', import.meta.url));

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '300' },
    kills: { type: 'string', default: '5' },
  },
});
const bytes = Number(values.megabytes) * 1e6;
const kills = Number(values.kills);

/** Everything the client sends, whether it arrives or not, is counted by a proxy in front of the server. */
let counted = 0;
let onCounted = () => {};
let serverPort = 0;
const proxy = createServer((client) => {
  const upstream = connect(serverPort, '127.0.0.1');
  client.on('data', (piece) => {
    counted += piece.length;
    onCounted();
  });
  client.pipe(upstream).pipe(client);
  for (const socket of [client, upstream])
    socket.on('error', () => [client, upstream].map((s) => s.destroy()));
});
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

const folder = await mkdtemp(join(tmpdir(), 'undertone-bench-resume-'));
const server = await startServerProcess({ env: { SERVICE_WORKERS: '1', SERVICE_PUBLIC_URL: url } });
serverPort = Number(new URL(server.url).port);
try {
  const path = join(folder, 'talk.wav');
  await writeRandom(path);
  console.log(describeMachine());
  for (let kill = 1; kill <= kills; kill++) {
    const code = await upload(path, (bytes * kill) / (kills + 1));
    console.log(`killed at ${(counted / 1e6).toFixed(0)} MB${code === null ? '' : ': too late'}`);
  }
  const code = await upload(path, Number.POSITIVE_INFINITY);
  const { requests } = await new EmotionClient({ apiKey: server.key, baseUrl: url }).asynch.list();
  const more = (counted / bytes - 1) * 100;
  console.log(`${values.megabytes} MB, ${kills} kills: ${more.toFixed(1)} % more than the file was sent`);
  const limits = new Limits();
  if (code !== 0) limits.miss(`the last upload ended with ${code}`);
  if (requests.length !== 1) limits.miss(`${requests.length} requests instead of one`);
  if (requests[0]?.status === 'uploading') limits.miss('the upload was not completed');
  limits.atMost('sent beside the file', more, 15, ' %');
  limits.conclude();
} finally {
  await server.stop();
  proxy.close();
  await rm(folder, { recursive: true, force: true });
}

/** Runs the command until it ends, or until so much has been sent in all; its exit code, null when it was killed. */
async function upload(path: string, killAt: number): Promise<number | null> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, SERVICE_API_KEY: server.key, SERVICE_URL: url, XDG_STATE_HOME: folder };
  const child = spawn(process.execPath, [UNDERTONE, 'upload', path, '--resume'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onCounted = () => {
    if (counted >= killAt) child.kill('SIGKILL');
  };
  const [code] = await once(child, 'close');
  onCounted = () => {};
  return code;
}

async function writeRandom(path: string): Promise<void> {
  const handle = await open(path, 'w');
  for (let left = bytes; left > 0; left -= MIB) await handle.write(randomBytes(Math.min(MIB, left)));
  await handle.close();
}
