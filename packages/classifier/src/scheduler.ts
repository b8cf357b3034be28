/**
 * Which work goes next, and with which companions. Pure: it knows no clock, no thread and no model.
 *
 * The rules, in words:
 * 1. Each priority has its own bounded queue, first in, first out; a full one refuses.
 * 2. Discrete work goes before asynch work.
 * 3. Nobody starves: while asynch work waits, at most `discreteTurns` discrete batches are served in a row;
 *    then one asynch batch has its turn.
 * 4. An inference cannot be interrupted, so a thread busy with asynch work makes discrete work wait. For
 *    `reserveMs` after a discrete request one thread is therefore kept from asynch work (never the only one).
 *    While nobody uses the discrete interface, asynch work has all threads.
 * 5. A batch is a run of windows of equal length at the head of a queue: at most `batchSamples` of audio, which
 *    bounds its memory and how long others wait for it (one window always fits), and no more than an even share
 *    for the threads that are idle: two idle threads with two windows take one each.
 * 6. Work given back by a lost thread returns to the head of its queue and then travels alone, so that
 *    something that kills a thread cannot take its companions along twice.
 */
export type Priority = 'discrete' | 'asynch';

export interface Work {
  readonly priority: Priority;
  /** In samples; only equal lengths can share a batch. */
  readonly length: number;
}

export interface Rules {
  /** For each priority. */
  queueLimit: number;
  batchSamples: number;
  discreteTurns: number;
  reserveMs: number;
}

export interface Moment {
  now: number;
  /** Threads that live, busy or idle. */
  threads: number;
  idle: number;
  /** Threads busy with asynch work. */
  asynchRunning: number;
}

export class Scheduler<W extends Work> {
  readonly #rules: Rules;
  readonly #queues: Record<Priority, W[]> = { discrete: [], asynch: [] };
  readonly #givenBack = new WeakSet<W>();
  #turns = 0;
  #lastDiscreteAt = Number.NEGATIVE_INFINITY;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** False when this priority's queue is full; the work is then not taken. */
  offer(work: W, now: number): boolean {
    if (work.priority === 'discrete') this.#lastDiscreteAt = now;
    const queue = this.#queues[work.priority];
    if (queue.length >= this.#rules.queueLimit) return false;
    queue.push(work);
    return true;
  }

  /** Work that was under way when its thread was lost; it was accepted once, so no limit applies. */
  giveBack(batch: readonly W[]): void {
    for (const work of batch.toReversed()) {
      this.#givenBack.add(work);
      this.#queues[work.priority].unshift(work);
    }
  }

  /** False when it is not waiting here (any more). */
  remove(work: W): boolean {
    const queue = this.#queues[work.priority];
    const index = queue.indexOf(work);
    if (index >= 0) queue.splice(index, 1);
    return index >= 0;
  }

  /** Everything that waits leaves, discrete work first. */
  drain(): W[] {
    return [...this.#queues.discrete.splice(0), ...this.#queues.asynch.splice(0)];
  }

  waiting(priority: Priority): number {
    return this.#queues[priority].length;
  }

  waitingSamples(priority: Priority): number {
    return this.#queues[priority].reduce((sum, work) => sum + work.length, 0);
  }

  /** The batch for one idle thread; empty when there is nothing that may start now. */
  next(moment: Moment): W[] {
    if (moment.idle < 1) return [];
    const { discrete, asynch } = this.#queues;
    const asynchMayRun = asynch.length > 0 && moment.asynchRunning < this.#asynchShare(moment);
    const asynchIsDue = asynchMayRun && this.#turns >= this.#rules.discreteTurns;
    if (discrete.length > 0 && !asynchIsDue) {
      this.#turns = asynch.length > 0 ? this.#turns + 1 : 0;
      return this.#take('discrete', moment.idle);
    }
    if (!asynchMayRun) return [];
    this.#turns = 0;
    return this.#take('asynch', moment.idle);
  }

  #asynchShare({ now, threads }: Moment): number {
    const discreteIsAbout = now - this.#lastDiscreteAt < this.#rules.reserveMs;
    return discreteIsAbout ? Math.max(1, threads - 1) : threads;
  }

  #take(priority: Priority, idle: number): W[] {
    const queue = this.#queues[priority];
    const head = queue[0] as W;
    const share = Math.ceil(queue.length / idle);
    const fitting = Math.floor(this.#rules.batchSamples / head.length);
    const most = this.#givenBack.has(head) ? 1 : Math.min(fitting, share);
    let size = 1;
    while (size < most && this.#fits(queue[size] as W, head)) size++;
    return queue.splice(0, size);
  }

  #fits(work: W, head: W): boolean {
    return work.length === head.length && !this.#givenBack.has(work);
  }
}
