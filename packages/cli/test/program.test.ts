import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { output, start, undertone, undertoneProcess } from './support/undertone.ts';

test('--version prints the version and nothing else', async () => {
  const { code, stdout, stderr } = await undertoneProcess(['--version']);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.deepEqual([code, stderr], [0, '']);
});

test('--help lists every command and where to start', async () => {
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
  ['an unknown model', ['classify', '--model', '12emotions', 'voice.wav']],
] as const) {
  test(`${what} exits with 2 and a hint on standard error`, async () => {
    const run = args[0] === 'clasify' ? undertoneProcess : undertone;
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^error: /);
    assert.match(stderr, /--help/);
  });
}

test('an old Node is rejected first', async () => {
  const pretend = "Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } })";
  const { code, stderr } = await undertoneProcess(['doctor'], {
    nodeArgs: ['--import', `data:text/javascript,${pretend}`],
  });
  assert.equal(code, 1);
  assert.match(stderr, /needs Node 22\.18 or newer/);
});

test('a reader that closes the pipe early, such as head, is not an error', async () => {
  const child = start(['doctor', '--port', '0']);
  child.stdout?.destroy();
  const [stderr, [code]] = await Promise.all([output(child.stderr), once(child, 'close')]);
  assert.deepEqual([code, stderr], [0, '']);
});

test('bash completes commands, flags and their values, each for its own command', async () => {
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
  assert.equal(completed('undertone', 'keys', ''), 'create limits list revoke --help');
  assert.equal(completed('undertone', 'keys', 'create', '--ex'), '--expires');
  assert.equal(completed('undertone', 'classify', '--model', '7'), '7emotions');
  assert.equal(completed('undertone', 'completion', 'z'), 'zsh');
  assert.equal(completed('undertone', 'upload', 'a.wav', '--channels', ''), 'mix separate');
  assert.equal(completed('undertone', 'listen', '--channels', ''), '', 'these channels are a number');
  const files = [
    ['undertone', 'classify', 'recording.w'],
    ['undertone', 'classify', ''],
    ['undertone', 'listen', ''],
    ['undertone', 'models', 'compare', ''],
    ['undertone', 'upload', '--output', ''],
    ['undertone', 'upload', 'a.wav', '-o', ''],
    ['undertone', 'serve', '--data-dir', ''],
  ].map((words) => completed(...words));
  assert.deepEqual(files, Array(files.length).fill(''), 'without words the shell completes file names');
  assert.match(script, /^complete -o default -F _undertone undertone$/m);
  assert.equal(completed('undertone', 'classify', '--mod'), '--model --models-dir', 'flags after a dash');
  assert.equal(completed('undertone', 'list', '--st'), '--status');
  assert.equal(completed('undertone', 'listen', '--st'), '', 'list is not the beginning of listen');
  assert.equal(completed('undertone', 'keys', 'list', '--st'), '');
  assert.match((await undertone(['completion', 'zsh'])).stdout, /bashcompinit.*complete .*undertone/s);
  const { stdout: fish } = await undertone(['completion', 'fish']);
  assert.match(fish, /^complete -c undertone -n '__fish_use_subcommand' -f -a keys -d '.+'$/m);
  assert.match(fish, /seen_subcommand_from list; and not __fish_seen_subcommand_from keys .*' -l status /m);
  assert.match(fish, /seen_subcommand_from upload; .*' -l output -s o .* -r -F$/m);
  assert.doesNotMatch(fish, /from classify; [^']*' -f$/m, 'files are offered');
  assert.match(fish, /from delete; [^']*' -f$/m, 'files are not offered');
  assert.match(
    fish,
    /^complete .*seen_subcommand_from keys; and .*seen_subcommand_from create' -l expires /m,
  );
});
