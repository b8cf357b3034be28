/** How the server's memory is laid out, whoever starts it: `make serve`, `npx undertone serve` or a service manager. */
const NODE_FLAGS = [
  // Bodies pass through quickly: a small young generation is collected often and keeps the process small.
  '--max-semi-space-size=4',
  // Audio lies outside the JavaScript heap but counts towards the growth after which all of it is collected. Ours is
  // small, so that would be every fourth recording; with some room to grow it is rare enough.
  '--heap-growing-percent=150',
];
/** Each thread would otherwise have a heap of its own, which is never given back. */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: '2',
  // A fixed limit: glibc would otherwise raise it to the largest body it has seen, and never give such memory back.
  MALLOC_MMAP_THRESHOLD_: String(1024 * 1024),
};

/** Replaces this process by itself with these flags: the same process id, so signals reach the server. */
export function applyRuntimeFlags(): void {
  if (NODE_FLAGS.every((flag) => process.execArgv.includes(flag)) || process.platform === 'win32') return;
  const [program = process.execPath, ...args] = process.argv;
  process.execve?.(program, [program, ...NODE_FLAGS, ...process.execArgv, ...args], {
    ...ENVIRONMENT,
    ...process.env,
  });
}
