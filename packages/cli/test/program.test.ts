import assert from 'node:assert/strict';
import { test } from 'node:test';
import { undertone } from './support/undertone.ts';

test('--version prints the version and nothing else', async () => {
  const { code, stdout, stderr } = await undertone(['--version']);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.deepEqual([code, stderr], [0, '']);
});

test('--help names every command and says where to start', async () => {
  const { code, stdout } = await undertone(['--help']);
  assert.equal(code, 0);
  for (const command of ['serve', 'keys', 'classify', 'models', 'doctor']) {
    assert.match(stdout, new RegExp(`^  ${command}\\b`, 'm'));
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
