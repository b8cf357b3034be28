import type { Log } from './log.ts';
import type { Terminal } from './platform/platform.ts';
import type { Progress, ProgressListener } from './types.ts';

const REDRAW_MS = 100;
const MIB = 1024 ** 2;

const LABELS = {
  uploading: 'Uploading',
  queued: 'Waiting',
  processing: 'Classifying',
  completed: 'Done',
};

/** Passes progress to the listener and the bar. A retried part does not move it backwards. */
export class Reporter {
  readonly #listener: ProgressListener | undefined;
  readonly #bar: Bar | undefined;
  readonly #log: Log;
  #latest: Progress | undefined;

  constructor(listener: ProgressListener | undefined, terminal: Terminal | null, log: Log) {
    this.#listener = listener;
    this.#bar = terminal ? new Bar(terminal) : undefined;
    this.#log = log;
  }

  report(progress: Progress): void {
    const latest = this.#latest;
    if (latest?.status === progress.status && progress.progress < latest.progress) return;
    this.#latest = progress;
    this.#bar?.show(progress);
    try {
      this.#listener?.(progress);
    } catch (error) {
      // A failing listener must not stop the operation.
      this.#log.error(`onProgress threw: ${String(error)}`);
    }
  }

  /** Ends the line of the bar; called after success and failure. */
  end(): void {
    this.#bar?.end();
  }
}

/** A progress bar on one line of a terminal; each status starts a new line. */
export class Bar {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  #status: Progress['status'] | undefined;
  #startedAt = 0;
  #drawnAt = 0;

  constructor(terminal: Terminal, now: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#now = now;
  }

  show(progress: Progress): void {
    const now = this.#now();
    if (progress.status === 'completed') {
      if (this.#status !== undefined) this.#draw({ status: this.#status, progress: 1 }, now);
      this.end();
    } else if (progress.status !== this.#status) {
      this.end();
      this.#status = progress.status;
      this.#startedAt = now;
      this.#draw(progress, now);
    } else if (now - this.#drawnAt >= REDRAW_MS || progress.progress === 1) {
      this.#draw(progress, now);
    }
  }

  end(): void {
    if (this.#status === undefined) return;
    this.#status = undefined;
    this.#terminal.write('\n');
  }

  #draw(progress: Progress, now: number): void {
    this.#drawnAt = now;
    const line = barLine(progress, (now - this.#startedAt) / 1000, this.#terminal.columns);
    this.#terminal.write(`\r\x1b[2K${line}`);
  }
}

/** The bar as text, never wider than the terminal. */
export function barLine(progress: Progress, seconds: number, columns: number): string {
  const label = LABELS[progress.status].padEnd(11);
  const percent = `${Math.floor(progress.progress * 100)} %`.padStart(5);
  const amount = amountOf(progress, seconds);
  const width = Math.min(40, columns - 1 - label.length - percent.length - amount.length - 2);
  if (width < 5) return `${label} ${percent}`.slice(0, Math.max(0, columns - 1));
  const filled = Math.round(width * progress.progress);
  return `${label} ${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${percent}${amount}`;
}

function amountOf({ sentBytes, totalBytes }: Progress, seconds: number): string {
  if (sentBytes === undefined || totalBytes === undefined) return '';
  const speed = seconds > 0.5 ? `  ${(sentBytes / MIB / seconds).toFixed(1)} MB/s` : '';
  return `  ${(sentBytes / MIB).toFixed(1)} of ${(totalBytes / MIB).toFixed(1)} MB${speed}`;
}
