#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';

// Plain JavaScript, so that a Node that is too old for TypeScript can still print this message.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `undertone needs Node 22.18 or newer, and this is ${process.version}. https://nodejs.org has newer ones.\n` +
      'In a clone on Linux, `npx undertone` uses the Node that `make install` has installed.\n',
  );
  process.exit(1);
}
// Halves the start-up time from the second start on. The cache stays inside this package.
module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'));

// Before everything else is loaded: it restarts this process with the server's runtime flags.
if (process.argv[2] === 'serve') {
  const { applyRuntimeFlags } = await import('@undertone/server/runtime-flags');
  applyRuntimeFlags();
}

// A reader such as `head` may close the pipe early: that is not an error.
process.stdout.on('error', (error) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const { runProgram } = await import('../src/program.ts');
const code = await runProgram(process.argv.slice(2));
// A shell ends its own loop only if the command died of the signal.
if (code === 130) process.kill(process.pid, 'SIGINT');
process.exitCode = code;
