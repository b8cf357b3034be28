/** The queue is full. Nothing was started: trying again later is safe. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    const seconds = retryAfterSeconds === 1 ? '1 second' : `${retryAfterSeconds} seconds`;
    super(`The server is busy. Try again in ${seconds}.`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A file in the models folder is missing, damaged or not what its catalogue says. The message says how to fix it. */
export class ModelFilesError extends Error {
  override readonly name = 'ModelFilesError';
}

/** No inference thread is alive and none can be started. */
export class NoThreadsError extends Error {
  override readonly name = 'NoThreadsError';
}

/** Two threads were lost over this very work. */
export class WorkerFailedError extends Error {
  override readonly name = 'WorkerFailedError';
}

/** Work that came after close(). */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';

  constructor() {
    super('The classifier is closed and takes no new work');
  }
}
