#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';

// Plain JavaScript, so that a Node too old for the rest gets as far as saying so.
const [major] = process.versions.node.split('.');
if (Number(major) < 24) {
  process.stderr.write(
    `undertone needs Node 24 or newer, and this is ${process.version}.\n` +
      'Inside the project `npx undertone` uses the Node that was installed with it (`make install`).\n',
  );
  process.exit(1);
}
// Halves the time a command takes to start, from its second start on. In our own folder: nothing is written to anybody else's.
module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'));
await import('../src/main.ts');
