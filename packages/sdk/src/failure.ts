import type { ErrorDetails, UndertoneError } from './errors.ts';

/** Why something did not work out, before the operation it belongs to gives it its public class. */
export class Failure extends Error {
  readonly details: ErrorDetails;
  /** Whether the same again may well succeed. */
  readonly retryable: boolean;

  constructor(message: string, details: ErrorDetails, retryable = false) {
    super(message, { cause: details.cause });
    this.details = details;
    this.retryable = retryable;
  }
}

type ErrorClass = new (message: string, details: ErrorDetails) => UndertoneError;

/** Runs an operation; a failure inside leaves it as the class that `classOf` picks. */
export async function failingAs<T>(
  classOf: ErrorClass | ((failure: Failure) => ErrorClass),
  requestId: string | undefined,
  operation: () => Promise<T>,
): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const Class = isClass(classOf) ? classOf : classOf(error);
    throw new Class(error.message, { ...error.details, requestId: requestId ?? error.details.requestId });
  }
}

function isClass(value: ErrorClass | ((failure: Failure) => ErrorClass)): value is ErrorClass {
  return value.prototype instanceof Error;
}
