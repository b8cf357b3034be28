/** The queue is full. Nothing was started, so a retry is safe. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    const seconds = retryAfterSeconds === 1 ? '1 second' : `${retryAfterSeconds} seconds`;
    super(`The server is busy. Try again in ${seconds}.`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A file in the models folder is missing, damaged or does not match its catalogue. The message says how to fix it. */
export class ModelFilesError extends Error {
  override readonly name = 'ModelFilesError';
}

/** No inference thread is running and none can be started. */
export class NoThreadsError extends Error {
  override readonly name = 'NoThreadsError';
}

/** Two threads were lost during the same task. */
export class WorkerFailedError extends Error {
  override readonly name = 'WorkerFailedError';
}

/** Work submitted after close(). */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';

  constructor() {
    super('The classifier is closed and accepts no new work');
  }
}
