import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyEvents, type BusboyHeaders, type BusboyInstance } from '@fastify/busboy';
import { type ReceiveLimits, receive } from '../http/receive.ts';
import { ProblemError } from '../problems.ts';

const HOW = 'send the recording as the part named file, as `curl -F file=@voice.wav` does';

/** Room for a few pieces as they come from the network, so that reading does not stop after each of them. */
const BUFFER_BYTES = 256 * 1024;

const DONE = new Error('the recording is complete');

/**
 * Reads a form and hands its part named `file` to `consume` while it arrives. All other parts are dropped
 * unread. Returns as soon as the recording is complete, whatever the form holds after it.
 */
export async function readFilePart<T>(
  request: IncomingMessage,
  limits: ReceiveLimits,
  consume: (file: Readable) => Promise<T>,
): Promise<T> {
  const found = Promise.withResolvers<Readable>();
  let file: Readable | undefined;
  let broken: ProblemError | undefined;
  const form = openForm(request.headers as BusboyHeaders);
  const stop = new AbortController();

  function fail(error: unknown): void {
    found.reject(error);
    file?.destroy(error as Error);
    stop.abort(error);
  }

  const onFile: BusboyEvents['file'] = (_name, part, fileName: string | undefined, _encoding, type) => {
    if (file !== undefined) {
      part.resume();
    } else if (fileName === undefined && type === 'text/plain') {
      part.resume();
      fail(new ProblemError('missing_file', `The part named file holds text: ${HOW}, with the @.`));
    } else {
      file = part;
      // Whoever consumes the file hears of the error as well, but in the words of the form's parser.
      part.on('error', (error) => {
        broken = error instanceof ProblemError ? error : notWellFormed();
      });
      found.resolve(part);
    }
  };
  form.on('file', onFile);
  form.on('finish', () => {
    if (file === undefined) found.reject(new ProblemError('missing_file', `No part is named file: ${HOW}.`));
  });
  form.on('error', () => fail(notWellFormed()));

  const received = receive(
    request,
    limits,
    (chunk) => (form.write(chunk) ? undefined : once(form, 'drain', { signal: stop.signal })),
    stop.signal,
  );
  received.then(() => form.end(), fail);

  try {
    return await consume(await found.promise);
  } catch (error) {
    throw broken ?? error;
  } finally {
    // Nothing that still arrives is of use; `receive` then lets it pass by.
    stop.abort(DONE);
    form.destroy();
  }
}

function notWellFormed(): ProblemError {
  return new ProblemError('bad_request', `The form is cut off or not well formed: ${HOW}.`);
}

function openForm(headers: BusboyHeaders): BusboyInstance {
  try {
    return new Busboy({
      headers,
      isPartAFile: (name) => name === 'file',
      highWaterMark: BUFFER_BYTES,
      fileHwm: BUFFER_BYTES,
      limits: { fieldNameSize: 100, fieldSize: 1024, fields: 100, headerPairs: 100, headerSize: 16 * 1024 },
    });
  } catch {
    throw new ProblemError(
      'bad_request',
      'The content-type multipart/form-data needs its boundary; let your HTTP library set it.',
    );
  }
}
