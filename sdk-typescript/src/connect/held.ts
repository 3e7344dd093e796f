/** One call that this process has: the work on it, what it has said, and how far the two have come. Does not send. */
import type { JsonObject } from '../json.js';
import { Flag, later } from '../waiting.js';
import type { Work } from '../work/work.js';
import { pieces } from './pieces.js';
import { said, type Unacked } from './unacked.js';

const STALE_MS = 5000; // for the frame of a later attempt to arrive

/** One call, from the frame that brought it until the hub has all that was said of it. */
export class HeldCall {
  work: Work | undefined;
  /** How many of the caller's answers the work was given. */
  answers = 0;
  /** Nothing that it says counts any more. */
  dropped = false;
  /** Nothing runs, or nothing any more. */
  readonly over = new Flag();
  /** There is something to send, or the attempt is another. */
  readonly news = new Flag();
  /** What failed may be tried again. */
  readonly again = new Flag();
  #cancelled = false;
  #doubted = 0; // the attempt that the hub called stale
  readonly #room = new Flag();
  #forget: () => void = () => undefined;

  constructor(
    readonly id: string,
    readonly said: Unacked,
    /** When nobody wants its end any more, on the clock of `now()`. */
    readonly until: number,
  ) {}

  /** Whether it takes capacity: one that asks, was cancelled or has ended takes none, though something may run. */
  get busy(): boolean {
    return !!this.work && !this.work.asking && !this.over.isSet && !this.said.ended && !this.#cancelled;
  }

  /** Whether the hub does not take what is said under this attempt. */
  get stale(): boolean {
    return this.#doubted === this.said.attempt;
  }

  /** Take what the work says; waits while too much of it is unacknowledged. */
  async emit(event: string, data: JsonObject): Promise<void> {
    for (const piece of pieces(event, data)) {
      while (this.said.full && !this.dropped) {
        this.#room.clear();
        await this.#room.wait();
      }
      if (this.dropped) return;
      this.said.add(said(event, piece));
      this.news.set();
    }
  }

  /** Something was acknowledged, or is no longer wanted: whoever waits to say more may look again. */
  heard(): void {
    this.#room.set();
  }

  /** Hand on what the caller answered. */
  answer(message: JsonObject): void {
    this.answers += 1;
    this.work?.answer(message);
  }

  /** It goes on under another attempt: there is something to send, and perhaps room for more. */
  adopted(): void {
    this.heard();
    this.wake();
  }

  /** The hub calls this attempt stale: the call is over, or goes on under a later one that is on its way here. */
  doubt(): void {
    if (this.stale) return;
    this.#doubted = this.said.attempt;
    this.news.set();
    this.#forget();
    this.#forget = later(STALE_MS, () => {
      if (this.stale) this.drop('the call is over, or somebody else carries it out');
    });
  }

  /** Nothing is left to do for it. */
  gone(): void {
    this.#forget();
  }

  /** Something about this call changed. */
  wake(): void {
    this.news.set();
    this.again.set();
  }

  /** Nothing runs for it any more. */
  end(): void {
    this.over.set();
    this.wake();
  }

  /** Cancel its work; what that says last is sent. */
  stop(reason: string): void {
    this.#cancelled = true;
    if (!this.over.isSet) this.work?.cancel(reason);
    this.heard();
  }

  /** Let go of it: its work is cancelled, and nothing more is sent. */
  drop(reason: string): void {
    this.dropped = true;
    this.stop(reason);
    this.wake();
  }
}
