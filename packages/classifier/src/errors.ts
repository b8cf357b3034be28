/** The queue is full, or what waits in it would already take too long. Nothing was started: trying later is safe. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super(`The classifier has more work than it can take; try again in ${retryAfterSeconds} s`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A file in the models folder is missing, damaged or not what its catalogue says. The message says how to mend it. */
export class ModelFilesError extends Error {
  override readonly name = 'ModelFilesError';
}

/** The thread that held this work was lost twice, or no thread can be started any more. */
export class WorkerFailedError extends Error {
  override readonly name = 'WorkerFailedError';
}

/** classify() after close(). */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';

  constructor() {
    super('The classifier is closed and takes no new work');
  }
}
