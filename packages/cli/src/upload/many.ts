import { labelOf, MODELS, type ModelId, timedSteps, timelineTable } from '@undertone/contract';
import type { Progress } from '@undertone/sdk';
import { Batch } from '../batch.ts';
import { checkServer, stopsAll, waitForResult, writeStatus } from '../client.ts';
import { CONTINUE, Output, type RowShape } from '../output.ts';
import { sharesOf } from '../timeline.ts';
import { explain, UsageError, UserError } from '../user-error.ts';
import { send, type Upload, type UploadFlags } from './send.ts';

/** Concurrent recordings of one command. */
const CONCURRENCY = 3;

/** Checks the flags and the output before the server is asked for anything. */
export async function planMany(flags: UploadFlags, files: readonly string[]): Promise<Output | undefined> {
  if (flags.json || flags.srt) {
    throw new UsageError('--json and --srt are for one recording. Use --jsonl or --csv for many.');
  }
  if (files.includes('-')) throw new UsageError('Standard input cannot be combined with other recordings.');
  return Output.plan(flags, rowShape(flags.model));
}

export async function uploadAll(
  upload: Upload,
  files: readonly string[],
  output: Output | undefined,
): Promise<void> {
  const { client, flags, signal } = upload;
  const waits = flags.wait || output !== undefined;
  const left = files.filter((file) => !output?.done.has(file));
  if (left.length > 0) await checkServer(client, flags.model);
  const batch = new Batch(waits ? 'Uploading and classifying' : 'Uploading', left.length);
  const waiting = left.values();
  // A wrong key or a lost server would fail all other files too.
  const lost = new AbortController();
  const stop = AbortSignal.any([signal, lost.signal]);
  const work = async () => {
    for (const file of waiting) {
      if (stop.aborted) return;
      try {
        const one = uploadOneOfMany({ ...upload, signal: stop }, file, batch, { output, waits });
        batch.succeed(file, await one);
      } catch (error) {
        if (stop.aborted) return;
        if (stopsAll(error)) return lost.abort(error);
        await output?.writeError({ file, error: { detail: explain(error) } });
        batch.fail(file, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, left.length) }, work));
  const next = output?.resumeHint || ` ${CONTINUE}`;
  if (lost.signal.aborted) {
    writeStatus('');
    throw new UserError(`${explain(lost.signal.reason)}${next}`);
  }
  if (!signal.aborted) await output?.finish();
  batch.end(output?.isStdout || !waits ? process.stderr : process.stdout, 'step', files.length - left.length);
  if (signal.aborted) throw new UserError(`Stopped.${next}`);
}

/** The columns of the timelines of many files. */
function rowShape(model: ModelId): RowShape {
  const [columns = []] = timelineTable([]) as string[][];
  return { columns: ['file', 'request_id', ...columns, ...MODELS[model]], field: 'emotions' };
}

/** Returns the labels of the steps; none without --wait. */
async function uploadOneOfMany(
  upload: Upload,
  file: string,
  batch: Batch,
  { output, waits }: { readonly output: Output | undefined; readonly waits: boolean },
): Promise<string[]> {
  // With --wait the upload is the first half of the work.
  const onProgress = ({ status, progress }: Progress) =>
    batch.progress(file, waits ? (status === 'uploading' ? progress / 2 : 0.5 + progress / 2) : progress);
  const requestId = await send(upload, file, onProgress);
  if (!waits) {
    batch.print(process.stdout, `${requestId}\t${file}`);
    return [];
  }
  const result = await waitForResult(upload.client, requestId, upload.signal, onProgress);
  const steps = timedSteps(result);
  if (output) {
    const [names = [], ...rows] = timelineTable(steps);
    await output.write(
      { file, ...result },
      rows.map((row) => ({
        file,
        request_id: requestId,
        ...Object.fromEntries(row.map((value, i) => [names[i], value])),
      })),
    );
  } else {
    batch.print(process.stdout, `${file}  ${sharesOf(steps).join(', ')}`);
  }
  return steps.map(labelOf);
}
