/**
 * The calls that ended in this process, and what they said last: one that is offered again is answered, not run again.
 *
 * Bounded by how many and by their bytes; the oldest are forgotten first, and would be run again.
 */
import type { Unacked } from './unacked.js';

const CALLS = 10_000;
const BYTES = 64 * 1024 * 1024;
const ENTRY_BYTES = 512;

/** The last calls that ended, by their ids. */
export class EndedCalls {
  readonly #most: number;
  readonly #calls = new Map<string, { said: Unacked; size: number }>();
  #bytes = 0;

  constructor(most = CALLS) {
    this.#most = most;
  }

  /** Remember what a call said last. */
  add(callId: string, said: Unacked): void {
    this.take(callId);
    const size = said.lastSize + said.size + ENTRY_BYTES;
    this.#calls.set(callId, { said, size });
    this.#bytes += size;
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= this.#most && this.#bytes <= BYTES) return;
      this.take(oldest);
    }
  }

  /** What a call said last, if it ended here. */
  find(callId: string): Unacked | undefined {
    return this.#calls.get(callId)?.said;
  }

  /** Forget it. */
  take(callId: string): void {
    this.#bytes -= this.#calls.get(callId)?.size ?? 0;
    this.#calls.delete(callId);
  }
}
