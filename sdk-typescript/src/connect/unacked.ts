/**
 * What one call has said and the hub has not yet acknowledged: numbered, batched, resent; no I/O.
 *
 * Within an attempt events count from 1. An attempt is a fence: when the hub begins another one, what it has on disk is
 * dropped and the rest counts from 1 again. So events are kept by their place in the call, and numbered when they are
 * first sent under an attempt:
 *
 *     place      1 2 3 4 5 6 7
 *     attempt 1  1 2 3 4            3 are on disk when attempt 2 begins
 *     attempt 2        1 2 3 4
 */
import { sizeOf, type JsonObject } from '../json.js';

/** How much goes into one POST. */
export const BATCH_EVENTS = 256;
const BATCH_BYTES = 1024 * 1024;
const HELD_EVENTS = 1024; // unacknowledged; beyond, whoever has more to say waits
const HELD_BYTES = 4 * 1024 * 1024;
const ATTEMPTS = 64; // whose numbering is remembered
const FRAME_BYTES = 64; // of number and name, around an event's data

const ENDS = new Set(['complete', 'error', 'cancelled', 'rejected', 'released']);

/** One event of a call, and about how many bytes it takes. */
export interface SaidEvent {
  readonly event: string;
  readonly data: JsonObject;
  readonly size: number;
}

/** What is sent at once, and under which attempt. */
export interface Batch {
  readonly attempt: number;
  readonly events: JsonObject[];
}

/** What of an attempt is on disk: up to which number. */
export interface Heard {
  readonly attempt: number;
  readonly n: number;
}

/** An event as it is kept. */
export function said(event: string, data: JsonObject): SaidEvent {
  return { event, data, size: sizeOf(data) + FRAME_BYTES };
}

/** The events of one call that have to reach the hub, in their order. */
export class Unacked {
  /** The place up to which all are on disk. */
  acked = 0;
  /** The bytes of what is held. */
  size = 0;
  /** The hub refused something, and is told so. */
  failed = false;
  #events: SaidEvent[] = [];
  #last: SaidEvent | undefined;
  readonly #bases = new Map<number, number>(); // by attempt: the place before its number 1

  constructor(public attempt: number) {}

  /** How many are held. */
  get length(): number {
    return this.#events.length;
  }

  /** Whether more should wait. */
  get full(): boolean {
    return this.length >= HELD_EVENTS || this.size >= HELD_BYTES;
  }

  /** Whether the last event was said. */
  get ended(): boolean {
    return this.#last !== undefined;
  }

  /** Whether it was handed back. */
  get released(): boolean {
    return this.#last?.event === 'released';
  }

  /** Whether all has been said, and is on disk. */
  get settled(): boolean {
    return this.ended && !this.length;
  }

  /** The bytes of the last event, which is kept. */
  get lastSize(): number {
    return this.#last?.size ?? 0;
  }

  /** The number, in this attempt, up to which all is on disk. */
  get number(): number {
    return this.acked - (this.#bases.get(this.attempt) ?? this.acked);
  }

  /** Take one more; after the last one nothing counts. */
  add(one: SaidEvent): void {
    if (this.ended) return;
    this.#hold(one);
    if (ENDS.has(one.event)) this.#last = one;
  }

  /** What goes into the next POST; nothing where nothing waits. One event that is too large goes alone. */
  batch(most = BATCH_EVENTS): Batch | undefined {
    if (!this.length) return undefined;
    const before = this.acked - this.#base();
    const events: JsonObject[] = [];
    let size = 0;
    for (const one of this.#events) {
      size += one.size;
      if (events.length && (events.length === most || size > BATCH_BYTES)) break;
      events.push({ n: before + events.length + 1, event: one.event, data: one.data });
    }
    return { attempt: this.attempt, events };
  }

  /** All up to `n` of that attempt is on disk; whether that is news. */
  ack({ attempt, n }: Heard): boolean {
    const base = this.#bases.get(attempt);
    // Once a later attempt has begun to count, what came before it is settled.
    if (base === undefined || (attempt !== this.attempt && this.#bases.has(this.attempt))) return false;
    return this.#drop(base + n);
  }

  /** The hub has all before `n` of that attempt; false where that one is no longer here. */
  expect(attempt: number, n: number): boolean {
    this.ack({ attempt, n: n - 1 });
    return attempt !== this.attempt || this.number < n;
  }

  /**
   * Go on under a later attempt.
   *
   * `heard` names what of an earlier one is on disk; `answered` the question that was answered: whoever answers has
   * read it, so all up to it is on disk. A call that ended has its end to tell again.
   */
  adopt(attempt: number, heard?: Heard, answered?: number): void {
    if (attempt <= this.attempt) return;
    if (heard) this.ack(heard);
    const isAnswered = ({ event, data }: SaidEvent): boolean =>
      (event === 'ask' || event === 'auth') && data['ask'] === answered;
    const question = answered === undefined ? -1 : this.#events.findIndex(isAnswered);
    if (question >= 0) this.#drop(this.acked + question + 1);
    this.attempt = attempt;
    if (this.#last && !this.length) this.#hold(this.#last);
  }

  /** Let this be the end, in place of all that is held: the hub does not take it. */
  fail(one: SaidEvent): void {
    this.#events = [];
    this.size = 0;
    this.failed = true;
    this.#last = one;
    this.#hold(one);
  }

  #hold(one: SaidEvent): void {
    this.#events.push(one);
    this.size += one.size;
  }

  /** Where this attempt begins to count: fixed when it first sends something. */
  #base(): number {
    const known = this.#bases.get(this.attempt);
    if (known !== undefined) return known;
    if (this.#bases.size === ATTEMPTS) this.#bases.delete(Math.min(...this.#bases.keys()));
    this.#bases.set(this.attempt, this.acked);
    return this.acked;
  }

  #drop(place: number): boolean {
    const gone = this.#events.splice(0, Math.max(0, place - this.acked));
    for (const one of gone) this.size -= one.size;
    this.acked += gone.length;
    return gone.length > 0;
  }
}
