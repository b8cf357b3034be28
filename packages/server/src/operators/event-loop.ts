import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;

/** How long the event loop stood still, in seconds: at most since the start, and the p99 of the last whole interval. */
export class EventLoopDelay {
  /** Two monitors, because a monitor loses the delay that is in progress when it is reset. */
  readonly #whole = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #interval = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #timer: NodeJS.Timeout;
  #lastP99: number | undefined;

  constructor(intervalMs: number) {
    this.#whole.enable();
    this.#interval.enable();
    this.#timer = setInterval(() => {
      this.#lastP99 = p99Of(this.#interval);
      this.#interval.reset();
    }, intervalMs).unref();
  }

  get max(): number {
    return toSeconds(this.#whole.max);
  }

  get p99(): number {
    return this.#lastP99 ?? p99Of(this.#interval);
  }

  reset(): void {
    this.#lastP99 = undefined;
    this.#whole.reset();
    this.#interval.reset();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#whole.disable();
    this.#interval.disable();
  }
}

function p99Of(monitor: ReturnType<typeof monitorEventLoopDelay>): number {
  return toSeconds(monitor.percentile(99));
}

/** The monitor includes its own sampling interval in the delay. */
function toSeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds - RESOLUTION_MS * 1e6) / 1e9;
}
