/**
 * The calls that an agent's process has: taken from frames, carried out, sent, remembered.
 *
 * A call that comes again under a later attempt goes on with the work that runs, or is answered with what it said last:
 * it is never run twice at once. Knows nothing of how the session is kept (`connection.ts` does).
 */
import { isObject, arrayOf, numberOf, objectOf, textOf, type JsonObject } from '../json.js';
import { Flag, now } from '../waiting.js';
import type { Emit } from '../work/line.js';
import type { Log } from '../work/log.js';
import type { Work } from '../work/work.js';
import { EndedCalls } from './ended.js';
import { HeldCall } from './held.js';
import type { Frame, Link } from './link.js';
import { Sender } from './sending.js';
import type { Sessions } from './sessions.js';
import { said, Unacked, type Heard } from './unacked.js';

const MOST_CAPACITY = 1000; // that a hub takes for one process
const HELD_CALLS = 10_000; // those that ask take no capacity; beyond, calls are handed back
const UNBOUNDED_MS = 3_600_000; // for the end of a call without a deadline
const PAST_DEADLINE_MS = 60_000;

/** Begins the work on a call. */
export type Begin = (call: JsonObject, emit: Emit) => Work;

/** A call that a session tells the hub of. */
export type Running = { call_id: string; attempt: number; n: number };

/** All calls of one process. */
export class Calls {
  readonly #begin: Begin;
  readonly #concurrency: number;
  readonly #link: Link;
  readonly #sessions: Sessions;
  readonly #log: Log;
  /** Whatever comes now is handed back. */
  leaving = false;
  readonly #held = new Map<string, HeldCall>();
  readonly #ended = new EndedCalls();
  readonly #idle = new Flag();

  constructor(begin: Begin, concurrency: number, link: Link, sessions: Sessions, log: Log) {
    this.#begin = begin;
    this.#concurrency = concurrency;
    this.#link = link;
    this.#sessions = sessions;
    this.#log = log;
  }

  /** How many there are. */
  get size(): number {
    return this.#held.size;
  }

  /** How many calls the hub may have running here. */
  get capacity(): number {
    return this.leaving ? 0 : Math.min(this.#concurrency, MOST_CAPACITY);
  }

  /** Those that a session tells the hub of. */
  running(): Running[] {
    const told = [...this.#held.values()].filter(({ dropped, said }) => !dropped && !said.settled);
    return told.map(({ id, said }) => ({ call_id: id, attempt: said.attempt, n: said.number }));
  }

  /** Do what a frame says; one that says nothing readable is noted and passed over. */
  take({ event, data }: Frame): void {
    const callId = textOf(data, 'call_id');
    const attempt = numberOf(data, 'attempt') ?? (event === 'call' ? 1 : undefined);
    const known = event === 'call' || event === 'input' || event === 'cancel';
    if (!known) return; // A later hub may say more.
    if (callId === undefined || attempt === undefined) {
      this.#log('error', `the hub sent a frame that makes no sense: ${event}`, {});
    } else if (event === 'call') this.#offered(callId, attempt, data);
    else if (event === 'input') this.#answered(callId, attempt, data);
    else this.#cancelled(callId, attempt, textOf(data, 'reason') ?? '');
  }

  /** The hub was heard of: what waits to be sent again need not wait longer. */
  retry(): void {
    for (const held of this.#held.values()) held.again.set();
  }

  /** These are no longer this process's, as a new session was told. */
  giveUp(drop: readonly string[]): void {
    for (const id of drop) this.#held.get(id)?.drop('the call is over, or somebody else carries it out');
  }

  /** A heartbeat was told that these are no longer this process's, under the attempts that it reported. */
  doubt(drop: readonly string[], reported: readonly Running[]): void {
    for (const { call_id, attempt } of reported) {
      const held = drop.includes(call_id) ? this.#held.get(call_id) : undefined;
      if (held?.said.attempt === attempt) held.doubt();
    }
  }

  /** Let go of all, or of those that only wait for an answer: whoever takes these up has what was answered. */
  drop(which: 'all' | 'asking'): void {
    for (const held of this.#held.values()) if (which === 'all' || held.work?.asking) held.drop('the agent stops');
  }

  /** Wait until no call is left; whether that was in time. */
  async finished(withinMs: number): Promise<boolean> {
    this.#idle.clear();
    return !this.size || (await this.#idle.wait(withinMs));
  }

  #offered(callId: string, attempt: number, call: JsonObject): void {
    const held = this.#held.get(callId);
    const answers = arrayOf(call, 'answers').filter(isObject);
    if (held && !held.dropped) {
      held.said.adopt(attempt, heardOf(call));
      for (const message of answers.slice(held.answers)) held.answer(message);
      held.adopted();
      return;
    }
    const ended = this.#ended.find(callId);
    if (ended) {
      if (attempt <= ended.attempt) return;
      this.#ended.take(callId);
      ended.adopt(attempt, heardOf(call));
      this.#carry(new HeldCall(callId, ended, untilOf(call)));
      return;
    }
    const fresh = new HeldCall(callId, new Unacked(attempt), untilOf(call));
    const busy = [...this.#held.values()].filter((one) => one.busy).length;
    if (this.leaving || busy >= this.#concurrency || this.size >= HELD_CALLS) fresh.said.add(said('released', {}));
    else {
      fresh.answers = answers.length;
      fresh.work = this.#begin(call, (event, data) => fresh.emit(event, data));
    }
    this.#carry(fresh, held);
  }

  #answered(callId: string, attempt: number, data: JsonObject): void {
    const held = this.#held.get(callId);
    const ask = numberOf(data, 'ask') ?? 0;
    if (!held || held.dropped) {
      // Its work is not here: handed back, the call comes again with all that was answered.
      const fresh = new HeldCall(callId, new Unacked(attempt), now() + PAST_DEADLINE_MS);
      fresh.said.add(said('released', {}));
      this.#carry(fresh, held);
    } else if (attempt >= held.said.attempt) {
      held.said.adopt(attempt, heardOf(data), ask);
      if (ask >= held.answers) held.answer(objectOf(data, 'message'));
      held.adopted();
    }
  }

  #cancelled(callId: string, attempt: number, reason: string): void {
    const held = this.#held.get(callId);
    if (!held || held.dropped || attempt < held.said.attempt) return;
    held.said.adopt(attempt);
    held.adopted();
    held.stop(reason);
  }

  #carry(held: HeldCall, before?: HeldCall): void {
    this.#held.set(held.id, held);
    void this.#carried(held, before);
  }

  async #carried(held: HeldCall, before: HeldCall | undefined): Promise<void> {
    const working = this.#worked(held, before);
    try {
      await new Sender(held, this.#link, this.#sessions, this.#log).run();
    } catch (error) {
      this.#log('error', `sending what ${held.id} says failed`, { error });
      held.drop('it cannot be told');
    }
    await working;
    held.gone();
    if (this.#held.get(held.id) === held) this.#held.delete(held.id);
    if (held.said.ended && !held.said.released) this.#ended.add(held.id, held.said);
    if (!this.size) this.#idle.set();
  }

  /** Have the work done, if there is any; after what is left of an earlier attempt, which may be cleaning up. */
  async #worked(held: HeldCall, before: HeldCall | undefined): Promise<void> {
    try {
      if (!held.work) return;
      await before?.over.wait();
      if (!held.dropped) await held.work.run();
    } catch (error) {
      this.#log('error', `carrying out ${held.id} failed`, { error });
      await held.emit('error', { code: 'AGENT_ERROR', message: 'The agent failed.' });
    } finally {
      held.end();
    }
  }
}

/** When the end of a call is of no use to anybody any more. */
function untilOf(call: JsonObject): number {
  const deadline = Date.parse(textOf(call, 'deadline') ?? '');
  return now() + (Number.isNaN(deadline) ? UNBOUNDED_MS : deadline - Date.now() + PAST_DEADLINE_MS);
}

function heardOf(data: JsonObject): Heard | undefined {
  const { attempt, n } = objectOf(data, 'heard');
  return typeof attempt === 'number' && typeof n === 'number' ? { attempt, n } : undefined;
}
