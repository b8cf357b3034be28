// Starts a server behind nginx with deploy/nginx/undertone.conf and a certificate made for this run, and sends it short recordings,
// live audio and a 300 MB upload. acceptance.sh runs it in a namespace where voice.example.org is this machine.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { WAV_HEADER_BYTES, wavHeader } from '@undertone/testing/wav';

const ROOT = new URL('../', import.meta.url).pathname;
const UNDERTONE = join(ROOT, 'packages/cli/bin/undertone.js');
const HOST = 'voice.example.org';
const URL_OF_PROXY = `https://${HOST}`;
const UPLOAD_BYTES = 300_000_000;
const KEY = randomBytes(16).toString('hex');
const VOICE = join(ROOT, 'examples/voices/happy-1064.wav');
const folder = await mkdtemp(join(tmpdir(), 'undertone-proxy-'));
const certificate = join(folder, 'fullchain.pem');
const privateKey = join(folder, 'privkey.pem');
const { PATH = '', NGINX_PROGRAM = 'nginx' } = process.env;

function run(program: string, args: readonly string[], env: Record<string, string> = {}): number {
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  child.on('exit', (code) => {
    console.log(`${program} ${args.join(' ')} exited with ${code}`);
    process.exit(1);
  });
  return child.pid ?? assert.fail(`${program} did not start`);
}

async function until(what: string, check: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; !(await check().catch(() => false)); tries++) {
    if (tries === 300) throw new Error(`${what} did not start`);
    await sleep(100);
  }
}

async function curl(...args: string[]): Promise<{ status: number; version: string; body: string }> {
  const format = '\n%{http_code} %{http_version}';
  const common = ['--silent', '--show-error', '--cacert', certificate, '--write-out', format];
  const { stdout } = await promisify(execFile)('curl', [...common, '--header', `x-api-key: ${KEY}`, ...args]);
  const end = stdout.lastIndexOf('\n');
  const [status, version = ''] = stdout.slice(end + 1).split(' ');
  return { status: Number(status), version, body: stdout.slice(0, end) };
}

async function undertone(...args: string[]): Promise<string> {
  const env = { PATH, SERVICE_URL: URL_OF_PROXY, SERVICE_API_KEY: KEY, NODE_EXTRA_CA_CERTS: certificate };
  return (await promisify(execFile)(process.execPath, [UNDERTONE, ...args], { env })).stdout;
}

/** The site file as it is, but with the certificate of this run. */
async function startNginx(): Promise<number> {
  const subject = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`];
  const pair = ['-keyout', privateKey, '-out', certificate];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...subject, ...pair],
    {
      stdio: 'pipe',
    },
  );
  const site = readFileSync(join(ROOT, 'deploy/nginx/undertone.conf'), 'utf8')
    .replaceAll(`/etc/letsencrypt/live/${HOST}`, folder)
    .replace('/var/log/nginx/undertone.log', join(folder, 'access.log'));
  await writeFile(join(folder, 'site.conf'), site);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, 'temp', name)};`,
  );
  await mkdir(join(folder, 'temp'));
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; user root; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
     events { worker_connections 512; }
     http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`,
  );
  const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')];
  execFileSync(NGINX_PROGRAM, [...args, '-t', '-q'], { stdio: ['ignore', 'inherit', 'inherit'] });
  return run(NGINX_PROGRAM, args);
}

function peakMegabytes(pid: number): number {
  const [, kilobytes = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1000);
}

function childOf(parent: number): number {
  return Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')[0]);
}

async function tryShortRecordings(): Promise<void> {
  const start = performance.now();
  const { status, version, body } = await curl(
    '--http2',
    '--form',
    `file=@${VOICE}`,
    `${URL_OF_PROXY}/v1/discrete/emotion`,
  );
  assert.deepEqual([status, version], [200, '2'], body);
  assert.equal(JSON.parse(body).main_emotion, 'happy', body);
  console.log(`A short recording over HTTP/2: ${body} (${Math.round(performance.now() - start)} ms)`);
  const redirect = await curl('--head', `http://${HOST}/docs`);
  assert.equal(redirect.status, 308);
  const large = join(folder, 'large.wav');
  await writeFile(large, '');
  await truncate(large, 34 * 1024 ** 2);
  const tooLarge = await curl(
    '--http2',
    '--upload-file',
    large,
    '--request',
    'POST',
    `${URL_OF_PROXY}/v1/discrete/emotion`,
  );
  assert.equal(tooLarge.status, 413);
  for (const path of ['/metrics', '//metrics', '/%6detrics', '/metrics/', '/readyz', '/x/../metrics']) {
    const { status } = await curl('--path-as-is', URL_OF_PROXY + path);
    assert.equal(status, 404, path);
  }
  console.log(
    'Plain HTTP is redirected, 34 MB are refused with 413, /metrics and /readyz cannot be reached.',
  );
}

async function tryLiveAudio(): Promise<void> {
  const lines = (await undertone('listen', VOICE, '--json')).trim().split('\n');
  assert.ok(lines.length > 0 && lines.every((line) => JSON.parse(line)), lines.join('\n'));
  console.log(`A WebSocket on /v1/stream: ${lines[0]?.slice(0, 120)}`);
  const { io } = await import('socket.io-client');
  for (const transports of [['websocket'], ['polling', 'websocket']]) {
    const socket = io(URL_OF_PROXY, {
      transports,
      ca: readFileSync(certificate, 'utf8'),
      auth: { api_key: KEY },
      forceNew: true,
      reconnection: false,
    } as never);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('connect_error', reject);
    });
    socket.close();
  }
  console.log('Socket.IO connects, by WebSocket and by polling.');
}

async function tryUpload(server: number, nginx: number): Promise<void> {
  const file = join(folder, 'upload.wav');
  const dataBytes = UPLOAD_BYTES - WAV_HEADER_BYTES;
  await writeFile(file, wavHeader({ rate: 44_100, channels: 1, bits: 16, dataBytes }));
  await truncate(file, UPLOAD_BYTES);
  const stored = watchFolder(join(folder, 'temp'));
  const start = performance.now();
  const upload = [
    '--http2',
    '--request',
    'POST',
    '--upload-file',
    file,
    '--header',
    'content-type: audio/wav',
  ];
  const { status, version, body } = await curl(...upload, `${URL_OF_PROXY}/v1/asynch/requests`);
  const seconds = (performance.now() - start) / 1000;
  assert.deepEqual([status, version], [202, '2'], body);
  assert.equal(stored.stop(), 0, 'nginx stored a part of the upload');
  const { request_id } = JSON.parse(body);
  await undertone('delete', request_id);
  console.log(
    `${UPLOAD_BYTES / 1e6} MB in one call over HTTP/2: ${seconds.toFixed(1)} s; peak memory ${peakMegabytes(server)} MB ` +
      `(server), ${peakMegabytes(childOf(nginx))} MB (nginx); nothing on nginx's disk.`,
  );
  const parts = performance.now();
  const id = (await undertone('upload', file)).match(/[0-9a-f-]{36}/)?.[0] ?? assert.fail('no request id');
  console.log(`${UPLOAD_BYTES / 1e6} MB in parts: ${((performance.now() - parts) / 1000).toFixed(1)} s.`);
  await undertone('delete', id);
}

/** The largest number of files seen below a folder. */
function watchFolder(path: string): { stop: () => number } {
  let most = 0;
  const look = () => {
    const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    most = Math.max(most, files.length);
  };
  const timer = setInterval(look, 20);
  return {
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}

process.on('exit', () => existsSync(folder) && rmSync(folder, { recursive: true }));
const nginx = await startNginx();
const server = run(process.execPath, [UNDERTONE, 'serve'], {
  SERVICE_DATA_DIR: join(folder, 'data'),
  SERVICE_PUBLIC_URL: URL_OF_PROXY,
  SERVICE_TRUSTED_PROXIES: '127.0.0.1',
  SERVICE_API_KEY: KEY,
});
await until('the server', async () => (await fetch('http://127.0.0.1:8080/readyz')).ok);
await tryShortRecordings();
await tryLiveAudio();
await tryUpload(server, nginx);
process.exit(0);
