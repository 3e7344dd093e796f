/**
 * The events of one call as they happen, over as many connections as that takes.
 *
 * A connection that is lost before the call began is a request that failed (`retrying.ts`). Afterwards the stream is
 * taken up again behind the last event that arrived, so nothing is missed and nothing comes twice.
 */
import type { HubUnreachable } from '../errors.js';
import { isObject, numberOf, parsed, textOf } from '../json.js';
import { errorOfBody } from '../refusals.js';
import { jitter, now, sleep } from '../waiting.js';
import type { Events } from './http.js';
import { cancelled, completed, type StreamEvent } from './results.js';
import { isLost } from './retrying.js';
import type { SseEvent } from './sse.js';

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5000;
const GIVE_UP_MS = 15_000; // without one connection that brought something

/** Where one stream is: what it heard last, and how long it has heard nothing. */
export class Ears {
  /** Whether the call has ended. */
  ended = false;
  #wait = FIRST_WAIT_MS;
  #heardAt = now();

  constructor(
    /** The call, once it is known. */
    public callId = '',
    /** The number of the last event. */
    public after = 0,
  ) {}

  /** What one connection brings. Throws what the call failed with, and HubUnreachable where it is lost. */
  async *listen(events: Events): AsyncGenerator<StreamEvent> {
    for await (const sent of events) {
      this.#heardAt = now();
      this.#wait = FIRST_WAIT_MS;
      const event = this.#read(sent);
      if (/^\d+$/.test(sent.id)) this.after = Number(sent.id);
      if (event) {
        this.ended = event.type === 'complete';
        yield event;
      }
      if (this.ended) return;
    }
  }

  /** Wait before the next connection. Throws the error where that makes no sense, or has made none for long. */
  async wait(error: HubUnreachable, signal: AbortSignal | undefined): Promise<void> {
    const wait = jitter(this.#wait, 0.2);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
    if (!isLost(error) || now() - this.#heardAt + wait > GIVE_UP_MS) throw error;
    await sleep(wait, signal);
  }

  #read(sent: SseEvent): StreamEvent | undefined {
    const data = parsed(sent.data);
    if (!isObject(data)) return undefined;
    if (sent.name === 'start') this.callId = textOf(data, 'call_id') ?? this.callId;
    const place = { callId: this.callId, seq: Number(sent.id) || this.after };
    switch (sent.name) {
      case 'start':
        return { type: 'start', ...place };
      case 'progress':
        return { type: 'progress', ...place, progress: numberOf(data, 'progress'), message: textOf(data, 'message') };
      case 'chunk':
        return { type: 'chunk', ...place, content: textOf(data, 'content') ?? '' };
      case 'complete': {
        const answer = { ...data, call_id: this.callId };
        if (data['status'] === 'cancelled') throw cancelled(answer);
        const full = completed(data['result'], answer);
        return { type: 'complete', ...place, result: full.result, full };
      }
      case 'error': {
        const error = errorOfBody(data);
        error.callId = this.callId || undefined;
        throw error;
      }
      default:
        return undefined;
    }
  }
}
