/** Time: waiting for it, for a flag, or for whichever comes first. Nothing here outlives what waits for it. */

const LONGEST_MS = 2 ** 31 - 1; // beyond, a timer fires at once

/** Milliseconds on a clock that never goes back. */
export function now(): number {
  return performance.now();
}

/** Call something later; what is returned takes it back. */
export function later(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, Math.min(Math.max(ms, 0), LONGEST_MS));
  return () => clearTimeout(timer);
}

/** Wait so long, or until the signal is aborted: either way this returns. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = later(ms, end);
    signal?.addEventListener('abort', end);
  });
}

/** A time, more or less: by up to that share of it, at random. */
export function jitter(ms: number, share: number): number {
  return ms * (1 + share * (2 * Math.random() - 1));
}

/** Something that holds or does not, and may be waited for. */
export class Flag {
  #set = false;
  #waiting = new Set<() => void>();

  /** Whether it holds. */
  get isSet(): boolean {
    return this.#set;
  }

  /** It holds now. */
  set(): void {
    this.#set = true;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** It holds no more. */
  clear(): void {
    this.#set = false;
  }

  /** Wait until it holds, or for so long; whether it does. */
  async wait(withinMs?: number): Promise<boolean> {
    if (this.#set) return true;
    return await new Promise<boolean>((resolve) => {
      const cancel = withinMs === undefined ? undefined : later(withinMs, () => end(false));
      const end = (held: boolean): void => {
        cancel?.();
        this.#waiting.delete(heard);
        resolve(held);
      };
      const heard = (): void => end(true);
      this.#waiting.add(heard);
    });
  }
}
