import { applyRuntimeFlags } from '@undertone/server/runtime-flags';

// First of all: it starts this process anew, with the flags that the server runs under.
if (process.argv[2] === 'serve') applyRuntimeFlags();

// Whoever reads our output may stop when it has seen enough, as `| head` does: then there is nobody left to write for.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
