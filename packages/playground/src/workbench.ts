import type { Emotion, ModelId } from '@undertone/contract';
import { type EmotionClient, NotFoundError, type Progress } from '@undertone/sdk';
import { classify } from './classify.ts';
import { concurrencyLimit } from './concurrency.ts';
import { type Entry, isWorking } from './entry.ts';
import { type NewFile, truthOf } from './labelled-files.ts';
import type { LiveSession } from './live.ts';
import { openRecording } from './recording.ts';
import { ofRecording, type Result } from './result.ts';
import type { SavedEntry } from './saved.ts';

/** Decoding takes memory: a folder is opened a few files at a time. */
const opening = concurrencyLimit(2);
/** The server sees at most this many requests for stored results at once. */
const fetching = concurrencyLimit(3);

interface Listener {
  /** After a change, at most once a frame. */
  onChange(): void;
  /** The work on a recording has ended; without a result if it failed. */
  onFinished(entry: Entry, result?: Result): void;
}

/** The recordings on the page and the work on them, which goes on whatever is on the screen. */
export class Workbench {
  entries: readonly Entry[] = [];
  client: EmotionClient | undefined;
  readonly #listener: Listener;
  readonly #aborters = new Map<number, AbortController>();
  #nextId = 1;
  #scheduled = false;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  find(id: number): Entry | undefined {
    return this.entries.find((entry) => entry.id === id);
  }

  addFiles(files: readonly NewFile[], model: ModelId): readonly Entry[] {
    const added = files.map(({ file, path, truth }) => {
      const labelled = truth === undefined ? {} : { truth };
      return this.#newEntry({ name: file.name, path, model, file, state: 'waiting', ...labelled });
    });
    this.#add(added);
    for (const { id } of added) void this.#run(id);
    return added;
  }

  /** Opens a request that the server has. */
  open(requestId: string, name: string, model: ModelId): Entry {
    const known = this.entries.find((entry) => entry.requestId === requestId);
    if (known) return known;
    const entry = this.#newEntry({ name, path: name, model, requestId, state: 'fetching' });
    this.#add([entry]);
    void this.#run(entry.id);
    return entry;
  }

  restore(saved: readonly SavedEntry[]): void {
    const entries = saved.map((entry) =>
      this.#newEntry({ ...entry, state: entry.result ? 'done' : 'fetching' }),
    );
    this.#add(entries);
    for (const { id, result } of entries) if (!result) void this.#run(id);
  }

  addLive(session: LiveSession, name: string): Entry {
    const entry = this.#newEntry({ name, path: name, model: session.model, session, state: 'live' });
    this.#add([entry]);
    return entry;
  }

  /** The end of a microphone session. */
  async endLive(id: number, session: LiveSession): Promise<void> {
    const { result, error, recording: file } = session;
    const tooShort = new Error('No result: speak for at least 4 seconds before you stop.');
    if (result.steps.length === 0) return this.#change(id, { state: 'failed', error: error ?? tooShort });
    const recording = file && (await openRecording(file));
    const kept = recording && { file: recording.file, recording };
    this.#change(id, { state: 'done', result, ...(error !== undefined && { error }), ...kept });
  }

  retry(id: number): void {
    this.#change(id, { state: 'waiting', error: undefined });
    void this.#run(id);
  }

  /** Stops the work on a recording, and erases what the server has of it. */
  async remove(id: number): Promise<void> {
    const entry = this.find(id);
    if (!entry) return;
    entry.session?.stop();
    // An upload that has no request yet gets one in a moment: #onProgress deletes it then.
    const isOpening = entry.state === 'sending' && entry.file !== undefined;
    if (!isOpening) this.#aborters.get(id)?.abort(new Error('cancelled'));
    const { requestId } = entry;
    try {
      if (requestId !== undefined) await this.client?.asynch.delete(requestId);
    } catch (error) {
      if (!(error instanceof NotFoundError)) {
        if (isWorking(entry)) this.#change(id, { state: 'failed', error });
        throw error;
      }
    }
    this.#drop(id);
  }

  /** Takes a result off the page; the server keeps what it has for its 24 hours. */
  close(id: number): void {
    this.#drop(id);
  }

  /** Removes the recordings from the page; the server keeps its results for their 24 hours. */
  clear(): void {
    for (const { id, session } of this.entries) {
      session?.stop();
      this.#aborters.get(id)?.abort(new Error('cancelled'));
      this.#release(id);
    }
    this.entries = [];
    this.#changed();
  }

  /** A CSV with labels names files that are on the page or come later. */
  relabel(labels: ReadonlyMap<string, Emotion>): number {
    let count = 0;
    this.entries = this.entries.map((entry) => {
      const truth = truthOf(entry.path, labels);
      if (truth === undefined) return entry;
      count++;
      return { ...entry, truth };
    });
    this.#changed();
    return count;
  }

  async #run(id: number): Promise<void> {
    const aborter = new AbortController();
    this.#aborters.set(id, aborter);
    try {
      const result = await this.#classify(id, aborter.signal);
      const entry = this.find(id);
      if (!entry) {
        // Removed while the answer was on its way.
        if (result.requestId) await this.client?.asynch.delete(result.requestId);
        return;
      }
      const { requestId } = result;
      this.#change(id, { state: 'done', result, ...(requestId !== undefined && { requestId }) });
      this.#listener.onFinished(entry, result);
    } catch (error) {
      const entry = this.find(id);
      if (aborter.signal.aborted || !entry) return;
      this.#change(id, { state: 'failed', error });
      this.#listener.onFinished(entry);
    }
  }

  async #classify(id: number, signal: AbortSignal): Promise<Result> {
    const { client } = this;
    const entry = this.find(id);
    if (!client || !entry) throw new Error('Enter an API key first.');
    const { file, model, name, requestId } = entry;
    if (file === undefined) {
      return fetching(async () => {
        const options = { signal, onProgress: (progress: Progress) => this.#onProgress(id, progress) };
        return ofRecording(await client.asynch.wait(requestId ?? '', options), model);
      });
    }
    const recording =
      entry.recording ??
      (await opening(() => {
        signal.throwIfAborted();
        this.#change(id, { state: 'reading' });
        return openRecording(file);
      }));
    this.#change(id, { recording, state: 'waiting' });
    return classify(client, recording, {
      model,
      name,
      signal,
      onStart: () => this.#change(id, { state: 'sending' }),
      onProgress: (progress) => this.#onProgress(id, progress),
      resume: requestId,
    });
  }

  #onProgress(id: number, { status, progress, requestId }: Progress): void {
    if (this.find(id) === undefined && requestId !== undefined) {
      this.#aborters.get(id)?.abort(new Error('cancelled'));
      this.client?.asynch.delete(requestId).catch(() => undefined);
      return;
    }
    const state = status === 'completed' ? 'fetching' : status;
    this.#change(id, { state, progress, ...(requestId !== undefined && { requestId }) });
  }

  #newEntry(entry: Omit<Entry, 'id'>): Entry {
    return { ...entry, id: this.#nextId++ };
  }

  #add(more: readonly Entry[]): void {
    this.entries = [...this.entries, ...more];
    this.#changed();
  }

  #drop(id: number): void {
    this.#release(id);
    this.entries = this.entries.filter((entry) => entry.id !== id);
    this.#changed();
  }

  #release(id: number): void {
    const url = this.find(id)?.recording?.url;
    if (url) URL.revokeObjectURL(url);
  }

  #change(id: number, change: { [Name in keyof Entry]?: Entry[Name] | undefined }): void {
    this.entries = this.entries.map((entry) =>
      entry.id === id ? ({ ...entry, ...change } as Entry) : entry,
    );
    this.#changed();
  }

  #changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#listener.onChange();
    });
  }

  get isBusy(): boolean {
    return this.entries.some(isWorking);
  }
}
