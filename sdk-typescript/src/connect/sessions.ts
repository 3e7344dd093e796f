/** The session that an agent's process has at its hub: at most one at a time, waited for while there is none. */
import { Flag } from '../waiting.js';

/** One session, until the hub says that it is over. */
export class Session {
  /** The number of the last frame. */
  received = 0;
  /** Set when the hub does not know it any more. */
  readonly over = new Flag();

  constructor(
    readonly id: string,
    readonly heartbeatMs: number,
  ) {}
}

/** Which session is open now. */
export class Sessions {
  #open: Session | undefined;
  #closed = false;
  readonly #changed = new Flag();

  /** The session that is open, if one is. */
  get open(): Session | undefined {
    return this.#open;
  }

  /** A session was opened. */
  begin(session: Session): void {
    this.#open = session;
    this.#changed.set();
  }

  /** The hub does not know it any more; a second time changes nothing. */
  end(session: Session): void {
    session.over.set();
    if (this.#open !== session) return;
    this.#open = undefined;
    if (!this.#closed) this.#changed.clear();
  }

  /** There will be no other: nobody waits any more. */
  close(): void {
    this.#closed = true;
    this.#changed.set();
  }

  /** The session that is open; waits for one, and returns nothing where none will come. */
  async current(): Promise<Session | undefined> {
    while (!this.#open && !this.#closed) await this.#changed.wait();
    return this.#closed ? undefined : this.#open;
  }
}
