import assert from 'node:assert/strict';
import { copyFile, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { MODELS } from '@undertone/contract';
import { silentWav } from '@undertone/testing/wav';
import { makeOwnModels } from './support/models.ts';
import { SHIPPED, temporaryFolder, undertone, undertoneProcess, VOICES } from './support/undertone.ts';

const angry = join(VOICES, 'angry-1013.wav');
const happy = join(VOICES, 'happy-1039.wav');

test('prints a bar for each emotion, the most likely first, without colour outside a terminal', async () => {
  const { code, stdout, stderr } = await undertoneProcess(['classify', angry], { env: SHIPPED });
  assert.deepEqual([code, stderr], [0, '']);
  const [title, ...lines] = stdout.trimEnd().split('\n');
  assert.match(title ?? '', /angry-1013\.wav {2}5\.1 s, \d\.\d s of speech$/);
  const bars = lines
    .slice(0, 4)
    .map((line) => /^ {2}(\w+) +(\d+\.\d) %(?: {2}([█▉▊▋▌▍▎▏]+))?$/u.exec(line) ?? assert.fail(line));
  assert.deepEqual(bars.map(([, emotion]) => emotion).sort(), [...MODELS['4emotions']].sort());
  const shares = bars.map(([, , share]) => Number(share));
  assert.deepEqual(
    shares,
    shares.toSorted((a, b) => b - a),
  );
  for (const [line, , share, bar] of bars) assert.ok(bar || Number(share) < 1, line);
  assert.ok(!stdout.includes('\u001b'));
});

test('FORCE_COLOR and NO_COLOR switch colour on and off', async () => {
  const coloured = await undertone(['classify', angry], { env: { FORCE_COLOR: '1' } });
  assert.ok(coloured.stdout.includes('\u001b['));
  const plain = await undertone(['classify', angry], { env: { NO_COLOR: '1', TERM: 'xterm-256color' } });
  assert.ok(!plain.stdout.includes('\u001b'));
});

test('--json prints one object per line in the order of the files, including failures', async (t) => {
  const folder = await temporaryFolder(t);
  const short = join(folder, 'short.wav');
  await writeFile(short, silentWav(0.5));
  const { code, stdout } = await undertone([
    'classify',
    '--json',
    '--model',
    '7emotions',
    angry,
    short,
    happy,
  ]);
  assert.equal(code, 3);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ file }) => file),
    [angry, short, happy],
  );
  const [first, failed] = lines;
  assert.deepEqual(Object.keys(first.all_predictions), [...MODELS['7emotions']]);
  const highest = Math.max(...Object.values<number>(first.all_predictions));
  assert.equal(first.confidence, highest);
  assert.equal(first.all_predictions[first.main_emotion], highest);
  assert.equal(first.seconds, 5.12);
  assert.deepEqual(
    { code: failed.error.code, min: failed.error.min_seconds, actual: failed.error.actual_seconds },
    { code: 'audio_too_short', min: 1, actual: 0.5 },
  );
});

test('a file that is not a short recording fails alone, with a message that says what to do', async (t) => {
  const folder = await temporaryFolder(t);
  const long = join(folder, 'long.wav');
  await writeFile(long, silentWav(30));
  const words = join(folder, 'words.wav');
  await writeFile(words, 'these are words');
  const missing = join(folder, 'missing.wav');
  const { code, stdout, stderr } = await undertone(['classify', missing, long, words, happy]);
  assert.equal(code, 3);
  const errors = stderr.trimEnd().split('\n');
  assert.equal(errors.length, 3);
  assert.match(errors[0] ?? '', /missing\.wav: There is no such file\./);
  assert.match(errors[1] ?? '', /long\.wav: .*30 s long; 1 to 10 s.*`undertone upload`/);
  assert.match(errors[2] ?? '', /words\.wav: /);
  assert.match(stdout, /happy-1039\.wav/);
});

test('without ffmpeg, another format is refused in the words of this machine', async (t) => {
  const folder = await temporaryFolder(t);
  const song = join(folder, 'song.mp3');
  await writeFile(song, 'ID3 and more');
  const { code, stderr } = await undertone(['classify', song], { env: { PATH: folder } });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /song\.mp3: The recording is not plain WAV\. For other formats: apt-get install ffmpeg/,
  );
  assert.doesNotMatch(stderr, /server|Send/);
});

test('reads standard input, and accepts ten seconds with codec padding', async () => {
  const piped = await undertoneProcess(['classify', '--json', '-'], { input: await readFile(happy) });
  assert.equal(piped.code, 0);
  const named = await undertone(['classify', '--json', happy]);
  assert.deepEqual({ ...JSON.parse(piped.stdout), file: happy }, JSON.parse(named.stdout));
  const padded = await undertone(['classify', '--json', '-'], { input: silentWav(10.04) });
  assert.equal(padded.code, 0);
});

test('labels silence as no speech', async () => {
  const { code, stdout } = await undertone(['classify', '-'], { input: silentWav(5) });
  assert.equal(code, 0);
  assert.match(stdout, /^- {2}5\.0 s, \d\.\d s of speech$/m);
  assert.match(stdout, /No speech, so there is no emotion\./);
});

test('1 to 4 s are classified and marked as short', async (t) => {
  const folder = await temporaryFolder(t);
  const wav = await readFile(angry);
  const cut = join(folder, 'cut.wav');
  await writeFile(cut, shortened(wav, 2));
  const lines = await undertone(['classify', '--jsonl', cut, angry]);
  assert.equal(lines.code, 0, lines.stderr);
  const [short, whole] = lines.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual([short.seconds, short.short, whole.short], [2, true, false]);
  assert.equal(short.main_emotion, 'angry');
  const shown = await undertone(['classify', cut]);
  assert.match(shown.stdout, /cut\.wav {2}2\.0 s, \d\.\d s of speech, short\n/);
  assert.match(shown.stdout, /Short: under 4 s an answer is less reliable\./);
  const csv = await undertone(['classify', '--csv', cut]);
  assert.match(csv.stdout, /^file,.*,short\n.*,true\n$/);
  const line = await undertone(['classify', folder]);
  assert.match(line.stdout, /cut\.wav {2}short\n/);
});

/** The first seconds of a 16-bit mono WAV file. */
function shortened(wav: Buffer, seconds: number): Buffer {
  const bytes = seconds * wav.readUInt32LE(28);
  const data = wav.indexOf('data') + 8;
  const cut = Buffer.from(wav.subarray(0, data + bytes));
  cut.writeUInt32LE(cut.length - 8, 4);
  cut.writeUInt32LE(bytes, data - 4);
  return cut;
}

test('a folder prints a line per file, the failures, a table, and exits with 3', async (t) => {
  const folder = await temporaryFolder(t);
  await mkdir(join(folder, 'deep'));
  await copyFile(angry, join(folder, 'deep', 'a.wav'));
  await copyFile(happy, join(folder, 'b.WAV'));
  await writeFile(join(folder, 'quiet.wav'), silentWav(5));
  await writeFile(join(folder, 'short.wav'), silentWav(0.5));
  await writeFile(join(folder, 'notes.txt'), 'no recording');
  await writeFile(join(folder, '.hidden.wav'), 'no recording');
  const whole = await undertone(['classify', folder]);
  assert.equal(whole.code, 3);
  const lines = whole.stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines.slice(0, 3).map((line) => line.slice(line.indexOf(folder) + folder.length)),
    ['/b.WAV', '/deep/a.wav', '/quiet.wav'],
  );
  assert.match(lines[2] ?? '', /^no speech {10}\//);
  assert.equal(lines[3], '3 of 4 files, 1 failed');
  assert.match(lines.slice(4).join('\n'), /no speech +1 file +33 %/);
  assert.match(whole.stderr, /short\.wav: .*0\.5 s long; 1 to 10 s/);
  await rm(join(folder, 'short.wav'));
  assert.equal((await undertone(['classify', join(folder, 'deep')])).code, 0);
  const empty = await undertone(['classify', await temporaryFolder(t)]);
  assert.deepEqual([empty.code, empty.stdout], [1, '']);
  assert.match(empty.stderr, /There are no recordings in the folder/);
});

test('--output writes rows to a file, and --resume adds only the missing ones', async (t) => {
  const folder = await temporaryFolder(t);
  await copyFile(angry, join(folder, 'a, "quoted".wav'));
  await writeFile(join(folder, 'short.wav'), silentWav(0.5));
  for (const name of ['rows.csv', 'rows.jsonl']) {
    const output = join(await temporaryFolder(t), name);
    assert.equal((await undertone(['classify', folder, '-o', output])).code, 3);
    await writeFile(join(folder, 'quiet.wav'), silentWav(5));
    const resumed = await undertone(['classify', folder, '-o', output, '--resume']);
    assert.equal(resumed.code, 3);
    assert.match(resumed.stdout, /^1 of 2 files, 1 done before, 1 failed\n/);
    await rm(join(folder, 'quiet.wav'));
    const rows = (await readFile(output, 'utf8')).trimEnd().split('\n');
    assert.equal(rows.length, 3);
    if (name === 'rows.csv') {
      assert.match(rows[0] ?? '', /^file,emotion,confidence,seconds,speech_seconds,angry,.*,short$/);
      assert(rows[1]?.startsWith(`"${folder}/a, ""quoted"".wav",angry,`), rows[1]);
      assert.match(rows[2] ?? '', /quiet\.wav,no speech,0\.\d+,5,0(\.\d+)?,.*,false$/);
    } else {
      const [first, quiet, failed] = rows.map((row) => JSON.parse(row));
      assert.deepEqual([first.speech, quiet.speech], [true, false]);
      assert.equal(failed.error.code, 'audio_too_short');
    }
  }
});

test('an oversized file or pipe is rejected without reading all of it', async (t) => {
  const large = join(await temporaryFolder(t), 'large.wav');
  await writeFile(large, '');
  await truncate(large, 200 * 1024 ** 3);
  const named = await undertone(['classify', large]);
  assert.equal(named.code, 1);
  assert.match(named.stderr, /large\.wav: The file is larger than 32 MiB.*`undertone upload`/);
  const piped = await undertone(['classify', '--json', '-'], {
    input: new Uint8Array(33 * 1024 ** 2),
  });
  assert.equal(piped.code, 1);
  assert.match(JSON.parse(piped.stdout).error.detail, /larger than 32 MiB/);
});

test('writes nothing to the home or temporary folder: the runtime collects no usage data', async (t) => {
  const folder = await temporaryFolder(t);
  const { code } = await undertoneProcess(['classify', happy], { env: { HOME: folder, TMPDIR: folder } });
  assert.equal(code, 0);
  assert.deepEqual(await readdir(folder), []);
});

test('unknown weights are rejected with a list of the known ones', async () => {
  assert.equal((await undertone(['classify', '--weights', 'open', happy])).code, 0);
  const { code, stderr } = await undertone(['classify', happy], { env: { SERVICE_WEIGHTS: 'best' } });
  assert.equal(code, 1);
  assert.match(stderr, /There are no weights named "best".*research, open/);
});

test('a custom catalogue works, and a model that it lacks is named', async (t) => {
  const SERVICE_MODELS_DIR = await makeOwnModels(await temporaryFolder(t));
  const env = { SERVICE_MODELS_DIR, SERVICE_WEIGHTS: 'house' };
  const own = await undertone(['classify', '--json', happy], { env });
  assert.equal(own.code, 0, own.stderr);
  const shipped = await undertone(['classify', '--json', '--weights', 'open', happy]);
  assert.deepEqual(JSON.parse(own.stdout), JSON.parse(shipped.stdout));
  const missing = await undertone(['classify', '--model', '7emotions', happy], { env });
  assert.deepEqual([missing.code, missing.stdout], [1, '']);
  assert.match(missing.stderr, /no model "7emotions"\. Choose from 4emotions, 5emotions with --model/);
});
