import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { output, start, undertone } from './support/undertone.ts';

test('--version prints the version and nothing else', async () => {
  const { code, stdout, stderr } = await undertone(['--version']);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.deepEqual([code, stderr], [0, '']);
});

test('--help names every command and says where to start', async () => {
  const { code, stdout } = await undertone(['--help']);
  assert.equal(code, 0);
  const commands = [...(stdout.split('Start here')[0] ?? '').matchAll(/^ {2}([a-z]+) /gm)].flatMap(
    ([, name = '']) => (name === 'help' ? [] : [name]),
  );
  for (const command of ['serve', 'keys', 'classify', 'models', 'doctor'])
    assert.ok(commands.includes(command));
  for (const command of new Set(commands)) {
    const help = await undertone([command, '--help']);
    assert.equal(help.code, 0);
    assert.match(help.stdout, new RegExp(`^Usage: undertone ${command}`));
  }
  assert.match(stdout, /Start here:/);
});

for (const [what, args] of [
  ['an unknown command', ['clasify', 'voice.wav']],
  ['an unknown flag', ['models', '--jsno']],
  ['a missing argument', ['classify']],
  ['a model there is not', ['classify', '--model', '12emotions', 'voice.wav']],
] as const) {
  test(`${what} is exit code 2 with a hint on standard error`, async () => {
    const { code, stdout, stderr } = await undertone(args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^error: /);
    assert.match(stderr, /--help/);
  });
}

test('a Node that is too old is told so before anything else', async () => {
  const pretend = "Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } })";
  const { code, stderr } = await undertone(['doctor'], {
    nodeArgs: ['--import', `data:text/javascript,${pretend}`],
  });
  assert.equal(code, 1);
  assert.match(stderr, /needs Node 24 or newer/);
});

test('a reader that stops early, as head does, ends the command without complaint', async () => {
  const child = start(['doctor', '--port', '0']);
  child.stdout?.destroy();
  const [stderr, [code]] = await Promise.all([output(child.stderr), once(child, 'close')]);
  assert.deepEqual([code, stderr], [0, '']);
});

test('a shell completes commands, flags and the values of flags', async () => {
  const { stdout: script } = await undertone(['completion', 'bash']);
  const completed = (...words: string[]) =>
    execFileSync('bash', [
      '-c',
      `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _undertone; echo "\${COMPREPLY[*]}"`,
      'bash',
      ...words,
    ])
      .toString()
      .trim();
  assert.equal(completed('undertone', 'ser'), 'serve');
  assert.equal(completed('undertone', 'keys', ''), 'create list revoke --help');
  assert.equal(completed('undertone', 'keys', 'create', '--ex'), '--expires');
  assert.equal(completed('undertone', 'classify', '--model', '7'), '7emotions');
  assert.equal(
    completed('undertone', 'classify', 'recording.w'),
    '',
    'the shell itself completes file names',
  );
  for (const shell of ['zsh', 'fish']) {
    assert.match((await undertone(['completion', shell])).stdout, /complete .*undertone/);
  }
});
