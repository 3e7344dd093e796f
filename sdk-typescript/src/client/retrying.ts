/**
 * When a request to the hub is made again: only what never became a call, on one schedule, inside the deadline.
 *
 * The hub itself repeats deliveries to agents, so nothing that an agent did or failed to do is tried again here.
 */
import { DragomanError, HubUnreachable, Overloaded, RateLimited } from '../errors.js';
import { jitter, now, sleep } from '../waiting.js';

/** The waits between tries. */
export const WAITS_MS = [1000, 2000, 4000] as const;
const SHARE = 0.2;
const MOST_MS = 15_000; // of waiting in all

// No connection, one that was lost, or an answer of something in between that had no hub behind it.
const LOST = new Set(['refused', 'unresolved', 'timeout', 'reset', 'http_502', 'http_503', 'http_504']);

/** Whether another connection may bring what this one did not. */
export function isLost(error: HubUnreachable): boolean {
  return LOST.has(error.reason);
}

/** How long a request is tried, and whether it may be repeated where it may have arrived. */
export interface Trying {
  readonly retries: number;
  /** On the clock of `now()`. */
  readonly deadline: number;
  readonly repeatable: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What the first try brings that succeeds. Throws what the last one failed with. */
export async function tried<Got>(attempt: () => Promise<Got>, trying: Trying): Promise<Got> {
  let waited = 0;
  for (let count = 0; ;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof DragomanError) || now() >= trying.deadline) throw error;
      // A runtime that gave up waiting for a long call: asked again under the same id, the hub goes on with that one.
      if (trying.repeatable && error instanceof HubUnreachable && error.reason === 'slow') continue;
      const wait = count < trying.retries ? waitFor(error, count, trying.repeatable) : undefined;
      if (wait === undefined || waited + wait > MOST_MS || now() + wait >= trying.deadline) throw error;
      count += 1;
      waited += wait;
      await sleep(wait, trying.signal);
    }
  }
}

/** How long to wait before the next try; nothing where there is none. */
function waitFor(error: DragomanError, count: number, repeatable: boolean): number | undefined {
  const wait = jitter(WAITS_MS[Math.min(count, WAITS_MS.length - 1)] ?? 0, SHARE);
  if (error instanceof HubUnreachable) return isLost(error) && (repeatable || !error.sent) ? wait : undefined;
  // The hub itself had no room: no call came to exist, so there is no trace of one.
  const ownRefusal = error instanceof Overloaded || error instanceof RateLimited;
  return ownRefusal && error.traceId === undefined ? Math.max(wait, (error.retryAfterS ?? 0) * 1000) : undefined;
}
