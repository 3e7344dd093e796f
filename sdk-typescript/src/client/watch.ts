/** How long one exchange may take: in all, between its bytes, and until whoever asked wants it no more. */
import { later } from '../waiting.js';

/** Watches one exchange; its `signal` ends it. */
export class Watch {
  readonly #outer: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #leave: () => void;
  #cancelIdle: (() => void) | undefined;
  #request: Request | undefined;
  /** Whether the time was over. */
  timedOut = false;

  constructor(timeoutMs: number, outer?: AbortSignal) {
    this.#outer = outer;
    const cancel = later(timeoutMs, () => this.#expire());
    const left = (): void => this.#controller.abort();
    outer?.addEventListener('abort', left);
    if (outer?.aborted) left();
    this.#leave = () => {
      cancel();
      outer?.removeEventListener('abort', left);
    };
  }

  /** What ends the exchange. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Begin it. The request is kept: runtimes reach it from its signal weakly, and one that is gone cannot be ended. */
  begin(request: Request): Request {
    this.#request = request;
    return this.#request;
  }

  /** Whether nobody wants it any more. */
  get left(): boolean {
    return this.#outer?.aborted ?? false;
  }

  /** Why nobody wants it any more. */
  get reason(): unknown {
    return this.#outer?.reason;
  }

  /** Something was heard: now it may be silent for so long. */
  heard(idleMs: number): void {
    this.#cancelIdle?.();
    this.#cancelIdle = later(idleMs, () => this.#expire());
  }

  /** It is over: nothing is watched any more, and what is still open is closed. */
  end(): void {
    this.#leave();
    this.#cancelIdle?.();
    this.#controller.abort();
  }

  #expire(): void {
    this.timedOut = true;
    this.#controller.abort();
  }
}
