import { explain, isExpected, UserError } from './user-error.ts';

/** Ctrl-C stopped the command. After its message it dies of the signal, so that a loop of the shell ends too. */
export class Interrupted extends UserError {
  override readonly name: string = 'Interrupted';
}

/** Runs work that Ctrl-C cancels, and rejects with Interrupted when it has cleaned up. A second Ctrl-C kills the process. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const aborter = new AbortController();
  const onInterrupt = () => aborter.abort(new Interrupted('Stopped.'));
  process.once('SIGINT', onInterrupt);
  try {
    const result = await work(aborter.signal);
    if (aborter.signal.aborted) throw new Interrupted('');
    return result;
  } catch (error) {
    if (!aborter.signal.aborted || error instanceof Interrupted) throw error;
    // What broke because of the abort, such as the input, is not worth a message.
    throw new Interrupted(isExpected(error) ? explain(error) : 'Stopped.', { cause: error });
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}

/** A pipe that nobody closes would keep a stopped command waiting. */
export function stopReadingInput(signal: AbortSignal): void {
  signal.addEventListener('abort', () => process.stdin.destroy());
}
