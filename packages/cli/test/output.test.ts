import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Output, type OutputFlags } from '../src/output.ts';
import { temporaryFolder } from './support/undertone.ts';

const SHAPE = { columns: ['file', 'emotion'], field: 'emotion' };
const OLD = 'file,emotion\nold.wav,sad\n';

async function setUp(t: TestContext, name = 'rows.csv') {
  const folder = await temporaryFolder(t);
  const path = join(folder, name);
  const plan = async (flags: OutputFlags = {}) => {
    const output = await Output.plan({ output: path, ...flags }, SHAPE);
    assert.ok(output);
    return output;
  };
  return { folder, path, plan, text: () => readFile(path, 'utf8') };
}

const add = (output: Output, file: string) =>
  output.write({ file, emotion: 'happy' }, [{ file, emotion: 'happy' }]);

test('a file keeps its old content until the new one is complete', async (t) => {
  const { folder, path, plan, text } = await setUp(t);
  await writeFile(path, OLD, { mode: 0o600 });
  const output = await plan();
  assert.deepEqual(await readdir(folder), ['rows.csv'], 'planning writes nothing');
  await add(output, 'a.wav');
  assert.equal(await text(), OLD);
  assert.equal(
    output.resumeHint,
    ` The rows so far are in ${path}.part. Continue with the same command and --resume.`,
  );
  await output.finish();
  assert.equal(await text(), 'file,emotion\na.wav,happy\n');
  assert.deepEqual(await readdir(folder), ['rows.csv']);
  assert.equal((await stat(path)).mode & 0o777, 0o600, 'a private file stays private');
});

test('--resume continues an interrupted file, and a finished one', async (t) => {
  const { folder, path, plan, text } = await setUp(t);
  await writeFile(path, OLD);
  await add(await plan(), 'a.wav'); // and no finish: it was interrupted
  const resumed = await plan({ resume: true });
  assert.deepEqual([...resumed.done], ['a.wav']);
  await add(resumed, 'b.wav');
  assert.equal(await text(), OLD);
  await resumed.finish();
  assert.equal(await text(), 'file,emotion\na.wav,happy\nb.wav,happy\n');
  const again = await plan({ resume: true });
  assert.deepEqual([...again.done], ['a.wav', 'b.wav']);
  await add(again, 'c.wav');
  assert.equal(await text(), 'file,emotion\na.wav,happy\nb.wav,happy\nc.wav,happy\n');
  await again.finish();
  assert.deepEqual(await readdir(folder), ['rows.csv']);
});

test('--resume gives an interrupted file with all rows its name', async (t) => {
  const { folder, path, plan, text } = await setUp(t);
  await writeFile(path, OLD);
  await add(await plan(), 'a.wav'); // and killed before the end
  await (await plan({ resume: true })).finish();
  assert.equal(await text(), 'file,emotion\na.wav,happy\n');
  assert.deepEqual(await readdir(folder), ['rows.csv']);
});

test('--resume refuses a CSV with other columns and names both headers', async (t) => {
  const { path, plan, text } = await setUp(t);
  const foreign = 'name,age\nann,7\n';
  await writeFile(path, foreign);
  await assert.rejects(plan({ resume: true }), (error: Error) => {
    assert.match(error.message, /It has: name,age\n.*writes: file,emotion\n.*--output/s);
    return true;
  });
  assert.equal(await text(), foreign);
  // A spreadsheet's byte order mark and line ends are no other columns.
  await writeFile(path, '\ufefffile,emotion\r\nold.wav,sad\r\n');
  assert.deepEqual([...(await plan({ resume: true })).done], ['old.wav']);
});

test('--resume refuses JSON lines of another command, and drops failures to try them again', async (t) => {
  const { path, plan, text } = await setUp(t, 'rows.jsonl');
  for (const foreign of ['{"file":"a.wav","emotions":[]}\n', '{"name":"ann"}\n', 'not JSON\n', '[]\n']) {
    await writeFile(path, foreign);
    await assert.rejects(plan({ resume: true }), /was not written by this command\.\n.*line 1/);
    assert.equal(await text(), foreign);
  }
  const good = '{"file":"a.wav","emotion":"sad"}\n';
  await writeFile(path, `${good}{"file":"b.wav","error":{}}\n{"file":"c.w`);
  const resumed = await plan({ resume: true });
  assert.deepEqual([...resumed.done], ['a.wav']);
  await add(resumed, 'b.wav');
  await resumed.finish();
  assert.equal(await text(), `${good}{"file":"b.wav","emotion":"happy"}\n`);
});

test('the format of the flag and of the name must agree', async (t) => {
  const lines = await setUp(t, 'rows.jsonl');
  await assert.rejects(lines.plan({ csv: true }), /--csv and --output .*rows\.jsonl are two formats/);
  const csv = await setUp(t, 'rows.csv');
  await assert.rejects(csv.plan({ jsonl: true }), /--jsonl and --output .*rows\.csv are two formats/);
  assert.deepEqual(await readdir(csv.folder), []);
});

test('a command in which every file fails leaves an older file alone', async (t) => {
  const { folder, path, plan, text } = await setUp(t, 'rows.jsonl');
  const old = '{"file":"a.wav","emotion":"sad"}\n';
  await writeFile(path, old);
  const output = await plan();
  await output.writeError({ file: 'b.wav', error: { detail: 'unreadable' } });
  await output.finish();
  assert.equal(await text(), old);
  assert.deepEqual(await readdir(folder), ['rows.jsonl']);
  await rm(path);
  const fresh = await plan();
  await fresh.writeError({ file: 'b.wav', error: { detail: 'unreadable' } });
  await fresh.finish();
  assert.match(await text(), /unreadable/);
});

test('rows that come at the same time are all kept', async (t) => {
  const { plan, text } = await setUp(t);
  const output = await plan();
  const files = Array.from({ length: 50 }, (_, i) => `${i}.wav`);
  await Promise.all(files.map((file) => add(output, file)));
  await output.finish();
  const rows = (await text()).trimEnd().split('\n').slice(1);
  assert.deepEqual(
    rows,
    files.map((file) => `${file},happy`),
  );
});

test('a link stays a link, and a folder that is not there is named before the work starts', async (t) => {
  const { folder, path, plan } = await setUp(t);
  const link = join(folder, 'link.csv');
  await writeFile(path, OLD);
  await symlink(path, link);
  const output = await plan({ output: link });
  await add(output, 'a.wav');
  await output.finish();
  assert.equal(await readFile(path, 'utf8'), 'file,emotion\na.wav,happy\n');
  await assert.rejects(plan({ output: join(folder, 'missing', 'rows.csv') }), /cannot be written: .*missing/);
});
