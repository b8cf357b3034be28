import { runProgram } from './program.ts';

// Whoever reads our output may stop when it has seen enough, as `| head` does: then there is nobody left to write for.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runProgram(process.argv.slice(2));
