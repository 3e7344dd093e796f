/**
 * How long to wait before the next try: 0.2 s, doubling to 10 s, with full jitter.
 *
 * Where calls run it is 4 s at most: a hub that comes back waits 5 s for the processes that have them, then gives them
 * to others.
 */
const FIRST_MS = 200;
const LONGEST_MS = 10_000;
const BUSY_MS = 4000;

/** The waits of one thing that is tried again and again. */
export class Backoff {
  #next = FIRST_MS;

  /** It worked: the next failure is a first one. */
  reset(): void {
    this.#next = FIRST_MS;
  }

  /** How long to wait now; longer the next time. */
  nextMs(busy = false): number {
    const most = busy ? Math.min(this.#next, BUSY_MS) : this.#next;
    this.#next = Math.min(this.#next * 2, LONGEST_MS);
    return most * Math.random();
  }
}
