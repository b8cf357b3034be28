import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyEvents, type BusboyHeaders } from '@fastify/busboy';
import { ProblemError } from '../problems.ts';
import { type BodyLimits, receiveBody } from './body.ts';

/** What callers try to send as fields of the form, where it would silently do nothing. */
const QUERY_PARAMETERS = ['model', 'details', 'interval', 'step', 'channels', 'label', 'webhook_url'];

const HOW = 'send the recording as the part named file, as `curl -F file=@voice.wav` does';

/**
 * Hands over the part named `file` of a form, chunk by chunk; all others are dropped, but for those that only look as if they
 * had an effect. While `onChunk` returns a promise the sender waits (backpressure).
 */
export async function receiveFormFile(
  request: IncomingMessage,
  limits: BodyLimits,
  onChunk: (chunk: Buffer) => unknown,
  signal: AbortSignal,
): Promise<void> {
  const form = openForm(request.headers as BusboyHeaders);
  let found = false;
  let isComplete = false;
  const ended = Promise.withResolvers<void>();
  const stop = new AbortController();
  const fail = (error: unknown): void => {
    ended.reject(error);
    stop.abort(error);
  };
  const onFile: BusboyEvents['file'] = (_name, part, fileName: string | undefined, _encoding, type) => {
    if (found) return void part.resume();
    found = true;
    if (fileName === undefined && type === 'text/plain') {
      return fail(new ProblemError('missing_file', `The part named file is text: ${HOW}, with the @.`));
    }
    part.on('error', () => fail(notWellFormed()));
    part.on('data', (chunk: Buffer) => {
      try {
        const taken = onChunk(chunk);
        if (!(taken instanceof Promise)) return;
        part.pause();
        taken.then(() => part.resume(), fail);
      } catch (error) {
        fail(error);
      }
    });
    part.on('end', () => {
      isComplete = true;
    });
  };
  form.on('file', onFile);
  form.on('field', (name) => {
    if (QUERY_PARAMETERS.includes(name)) fail(belongsInQuery(name));
  });
  form.on('finish', () => {
    if (isComplete) ended.resolve();
    else fail(new ProblemError('missing_file', `No part is named file: ${HOW}.`));
  });
  // What comes after the file may be broken: it is not needed.
  form.on('error', () => (isComplete ? ended.resolve() : fail(notWellFormed())));
  receiveBody(
    request,
    limits,
    (chunk) => (form.write(chunk) ? undefined : once(form, 'drain', { signal: stop.signal })),
    AbortSignal.any([signal, stop.signal]),
  ).then(() => form.end(), fail);
  try {
    await ended.promise;
  } finally {
    // Nothing that still arrives is of use; `receiveBody` then lets it pass by.
    stop.abort();
    form.destroy();
  }
}

function openForm(headers: BusboyHeaders) {
  try {
    return new Busboy({
      headers,
      isPartAFile: (name) => name === 'file',
      limits: { fieldNameSize: 100, fieldSize: 1024, fields: 100, headerPairs: 100, headerSize: 16 * 1024 },
    });
  } catch {
    throw new ProblemError(
      'bad_request',
      'The content-type multipart/form-data needs its boundary; let your HTTP library set it.',
    );
  }
}

function notWellFormed(): ProblemError {
  return new ProblemError('bad_request', `The form is cut off or not well formed: ${HOW}.`);
}

function belongsInQuery(name: string): ProblemError {
  return new ProblemError(
    'bad_request',
    `Give ${name} in the address, not as a field of the form, as in \`?${name}=...\`.`,
  );
}
