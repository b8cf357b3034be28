import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyEvents, type BusboyHeaders } from '@fastify/busboy';
import { ProblemError } from '../problems.ts';
import { type BodyLimits, receiveBody } from './body.ts';

/** Callers sometimes send these as form fields, where they would silently have no effect. */
const QUERY_PARAMETERS = ['model', 'details', 'interval', 'step', 'channels', 'label', 'webhook_url'];

const HOW = 'send the recording as the part named file, as `curl -F file=@voice.wav` does';

/**
 * Passes on the part named `file` of a form, chunk by chunk, with backpressure as in `receiveBody`. Other parts are dropped;
 * one with the name of a query parameter is an error.
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
  // Errors after the file do not matter.
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
    // `receiveBody` then discards the rest.
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
  return new ProblemError('bad_request', `The form is truncated or malformed: ${HOW}.`);
}

function belongsInQuery(name: string): ProblemError {
  return new ProblemError(
    'bad_request',
    `Send ${name} as a query parameter (\`?${name}=...\`), not as a form field.`,
  );
}
