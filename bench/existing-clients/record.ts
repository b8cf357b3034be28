// Records what existing clients send, for packages/server/test/compat/recorded-clients. Run it when a client has changed.
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '@undertone/testing/ready';
import { startServerProcess } from '@undertone/testing/server-process';
import { environment } from './environment.ts';
import { RecordingProxy } from './recording-proxy.ts';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const VOICE = here('../../examples/voices/angry-1013.wav');
const RECORDINGS = here('../../packages/server/test/compat/recorded-clients/');
const folder = await mkdtemp(join(tmpdir(), 'undertone-record-'));
for (const name of ['test_file.wav', 'long_file_sample.wav']) await copyFile(VOICE, join(folder, name));

const CLIENTS = [
  { name: 'valenceai-0.5.1', packages: ['valenceai==0.5.1'], args: [here('first_generation.py'), folder] },
  {
    name: 'valenceai-1.0.5',
    packages: ['valenceai==1.0.5', 'pytest'],
    args: [here('second_generation.py'), folder],
  },
  {
    name: 'livekit-plugins-valenceai',
    packages: ['livekit-plugins-valenceai'],
    args: [here('livekit_plugin.py')],
  },
];

/** Names to record; empty: all. */
const only = process.argv.slice(2);

for (const { name, packages, args } of CLIENTS.filter(
  (one) => only.length === 0 || only.includes(one.name),
)) {
  const python = await environment(name, packages);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = await startServerProcess({ SERVICE_PUBLIC_URL: url });
  const proxy = new RecordingProxy(server.key, await readFile(VOICE));
  proxy.sendTo(server.url);
  await proxy.listen(port);
  const env = {
    PATH: process.env['PATH'],
    VALENCE_API_KEY: server.key,
    VALENCE_DISCRETE_URL: `${url}/emotionprediction`,
    VALENCE_ASYNCH_URL: `${url}/v1/asynch`,
    VALENCE_API_BASE_URL: url,
    VALENCE_WEBSOCKET_URL: url,
  };
  try {
    const more = args.length === 1 ? [url, VOICE] : [];
    const { stdout } = await promisify(execFile)(python, [...args, ...more], { cwd: folder, env });
    await writeFile(`${RECORDINGS}${name}.json`, `${JSON.stringify(proxy.recorded, null, 2)}\n`);
    console.log(`${name}: ${proxy.recorded.length} steps. ${stdout.trimEnd().split('\n').at(-1)}`);
  } finally {
    proxy.close();
    await server.stop();
  }
}
await rm(folder, { recursive: true });
