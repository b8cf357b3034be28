/**
 * Which work goes next. Pure: it knows no clock, no thread and no model.
 *
 * The rules, in words:
 * 1. Each priority has its own queue, first in, first out. Only the discrete one can be full, and then refuses: a long
 *    recording or a stream has no more than a few windows in flight, and waits for their answers before it reads on.
 * 2. Discrete work goes before stream work, and both before asynch work.
 * 3. Nobody starves: when work has waited while `turns` tasks of higher priorities were served, it has its turn.
 * 4. An inference cannot be interrupted, so a thread busy with asynch work makes discrete work wait. For `reserveMs`
 *    after a discrete request one thread is therefore kept from asynch work (never the only one). While nobody uses
 *    the discrete interface, asynch work has all threads.
 * 5. Work whose thread was lost returns to the head of its queue.
 */
export const PRIORITIES = ['discrete', 'stream', 'asynch'] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface Work {
  readonly priority: Priority;
}

export interface Rules {
  /** For discrete work. */
  queueLimit: number;
  turns: number;
  reserveMs: number;
}

export interface Moment {
  now: number;
  /** Threads that are alive, busy or idle. */
  threads: number;
  /** Threads busy with asynch work. */
  asynchRunning: number;
}

export class Scheduler<W extends Work> {
  readonly #rules: Rules;
  readonly #queues: Record<Priority, W[]> = { discrete: [], stream: [], asynch: [] };
  /** How many tasks of higher priorities were served while this queue had work. */
  readonly #passedOver: Record<Priority, number> = { discrete: 0, stream: 0, asynch: 0 };
  #lastDiscreteAt = Number.NEGATIVE_INFINITY;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** False when this priority's queue is full; the work is then not taken. */
  offer(work: W, now: number): boolean {
    if (work.priority === 'discrete') this.#lastDiscreteAt = now;
    const queue = this.#queues[work.priority];
    if (work.priority === 'discrete' && queue.length >= this.#rules.queueLimit) return false;
    queue.push(work);
    return true;
  }

  /** Work whose thread was lost; it was accepted once, so no limit applies. */
  requeue(work: W): void {
    this.#queues[work.priority].unshift(work);
  }

  /** False when it is not waiting here (any more). */
  remove(work: W): boolean {
    const queue = this.#queues[work.priority];
    const index = queue.indexOf(work);
    if (index >= 0) queue.splice(index, 1);
    return index >= 0;
  }

  /** Everything that waits with these priorities leaves the queues. */
  drain(priorities: readonly Priority[]): W[] {
    return priorities.flatMap((priority) => this.#queues[priority].splice(0));
  }

  waiting(priority: Priority): readonly W[] {
    return this.#queues[priority];
  }

  /** The work for one idle thread; undefined when there is nothing that may start now. */
  next(moment: Moment): W | undefined {
    const ready = PRIORITIES.filter((priority) => this.#mayStart(priority, moment));
    const priority = ready.find((each) => this.#passedOver[each] >= this.#rules.turns) ?? ready[0];
    if (priority === undefined) return undefined;
    for (const lower of PRIORITIES.slice(PRIORITIES.indexOf(priority) + 1)) {
      this.#passedOver[lower] = this.#queues[lower].length > 0 ? this.#passedOver[lower] + 1 : 0;
    }
    this.#passedOver[priority] = 0;
    return this.#queues[priority].shift();
  }

  #mayStart(priority: Priority, { now, threads, asynchRunning }: Moment): boolean {
    if (this.#queues[priority].length === 0) return false;
    const reserved = priority === 'asynch' && now - this.#lastDiscreteAt < this.#rules.reserveMs ? 1 : 0;
    return reserved === 0 || asynchRunning < Math.max(1, threads - reserved);
  }
}
