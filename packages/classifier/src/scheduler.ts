/**
 * Scheduling order. Pure logic without clock, threads or models.
 *
 * 1. Each priority has its own queue, in which owners take turns: however much one has queued, the next task of another one
 *    waits for one of them. Only the discrete queue has a limit: long recordings and streams have few
 *    windows in flight and wait for their results before they read on.
 * 2. Discrete work goes before stream work, and both before asynch work.
 * 3. No starvation: after `turns` tasks of higher priorities, the next task of a waiting queue is served.
 * 4. An inference cannot be interrupted, so asynch work on all threads would delay discrete work. Therefore one thread
 *    takes no asynch work for `reserveMs` after a discrete request, unless it is the only one.
 * 5. Work whose thread was lost returns to the head of its queue.
 */
export const PRIORITIES = ['discrete', 'stream', 'asynch'] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface Work {
  readonly priority: Priority;
  /** Whose it is. Work without an owner is that of one owner. */
  readonly owner?: string | undefined;
}

interface Queued<W> {
  readonly work: W;
  /** The n-th works of all owners have the same turn. */
  readonly turn: number;
}

export interface Rules {
  /** Maximum length of the discrete queue. */
  queueLimit: number;
  turns: number;
  reserveMs: number;
}

export interface SchedulerState {
  now: number;
  /** Live threads, busy or idle. */
  threads: number;
  /** Threads busy with asynch work. */
  asynchRunning: number;
}

export class Scheduler<W extends Work> {
  readonly #rules: Rules;
  /** In the order of the turns. */
  readonly #queues: Record<Priority, Queued<W>[]> = { discrete: [], stream: [], asynch: [] };
  /** The turn that is being served. */
  readonly #turn: Record<Priority, number> = { discrete: 0, stream: 0, asynch: 0 };
  /** Tasks of higher priorities served while this queue had work. */
  readonly #passedOver: Record<Priority, number> = { discrete: 0, stream: 0, asynch: 0 };
  #lastDiscreteAt = Number.NEGATIVE_INFINITY;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** False if the queue is full; the work is then not queued. */
  offer(work: W, now: number): boolean {
    if (work.priority === 'discrete') this.#lastDiscreteAt = now;
    const queue = this.#queues[work.priority];
    if (work.priority === 'discrete' && queue.length >= this.#rules.queueLimit) return false;
    const own = queue.findLast((queued) => queued.work.owner === work.owner)?.turn ?? -1;
    const turn = Math.max(own + 1, this.#turn[work.priority]);
    const before = queue.findLastIndex((queued) => queued.turn <= turn);
    queue.splice(before + 1, 0, { work, turn });
    return true;
  }

  /** For work whose thread was lost. It was accepted before, so no limit applies. */
  requeue(work: W): void {
    this.#queues[work.priority].unshift({ work, turn: this.#turn[work.priority] });
  }

  /** False if the work is not queued. */
  remove(work: W): boolean {
    const queue = this.#queues[work.priority];
    const index = queue.findIndex((queued) => queued.work === work);
    if (index >= 0) queue.splice(index, 1);
    return index >= 0;
  }

  /** Removes and returns all queued work of these priorities. */
  drain(priorities: readonly Priority[]): W[] {
    return priorities.flatMap((priority) => this.#queues[priority].splice(0).map(({ work }) => work));
  }

  waiting(priority: Priority): number {
    return this.#queues[priority].length;
  }

  /** The next work for an idle thread; undefined if none may start now. */
  next(state: SchedulerState): W | undefined {
    const ready = PRIORITIES.filter((priority) => this.#mayStart(priority, state));
    const priority = ready.find((each) => this.#passedOver[each] >= this.#rules.turns) ?? ready[0];
    if (priority === undefined) return undefined;
    for (const lower of PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1)) {
      this.#passedOver[lower] = this.#queues[lower].length > 0 ? this.#passedOver[lower] + 1 : 0;
    }
    this.#passedOver[priority] = 0;
    const next = this.#queues[priority].shift();
    this.#turn[priority] = next?.turn ?? 0;
    return next?.work;
  }

  #mayStart(priority: Priority, { now, threads, asynchRunning }: SchedulerState): boolean {
    if (this.#queues[priority].length === 0) return false;
    const reserved = priority === 'asynch' && now - this.#lastDiscreteAt < this.#rules.reserveMs ? 1 : 0;
    return reserved === 0 || asynchRunning < Math.max(1, threads - reserved);
  }
}
