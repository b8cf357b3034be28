/** Memory settings for every way to start the server: `make serve`, `npx undertone serve`, a service manager. */
const NODE_FLAGS = [
  // Bodies are short-lived: a small young generation is collected often and keeps the process small.
  '--max-semi-space-size=4',
  // Audio is outside the JavaScript heap but counts towards the growth that triggers a full collection. Our heap is
  // small, so by default every fourth recording would trigger one.
  '--heap-growing-percent=150',
];
/** By default glibc gives each thread a heap of its own and never returns that memory. */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: '2',
  // Fixed: glibc would raise it to the largest body seen, and then keep such memory.
  MALLOC_MMAP_THRESHOLD_: String(1024 * 1024),
};

/** Restarts this process with these flags under the same process id, so that signals reach the server. */
export function applyRuntimeFlags(): void {
  if (NODE_FLAGS.every((flag) => process.execArgv.includes(flag)) || process.platform === 'win32') return;
  const [program = process.execPath, ...args] = process.argv;
  process.execve?.(program, [program, ...NODE_FLAGS, ...process.execArgv, ...args], {
    ...ENVIRONMENT,
    ...process.env,
  });
}
