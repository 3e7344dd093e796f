/**
 * Sends what one call says until the hub has it: one POST at a time, what gathers meanwhile goes in the next.
 *
 *     say ─▶ Unacked ─▶ POST ─▶ acked: dropped          lost, refused for now: the same again, after a while
 *                         ├──▶ gap: from where the hub expects it
 *                         ├──▶ stale: wait for a later attempt; none comes: let go of the call
 *                         └──▶ session over: wait for the next session
 *
 * Ends when all was said and is on disk, when the call was let go of, or 60 s past its deadline.
 */
import { BadRequest, DragomanError } from '../errors.js';
import { textOf } from '../json.js';
import { now } from '../waiting.js';
import type { Log } from '../work/log.js';
import { Backoff } from './backoff.js';
import type { HeldCall } from './held.js';
import { Gap, SessionOver, Stale, type Link } from './link.js';
import type { Session, Sessions } from './sessions.js';
import { BATCH_EVENTS, said, type Batch } from './unacked.js';

/** What sends for one call. */
export class Sender {
  readonly #held: HeldCall;
  readonly #link: Link;
  readonly #sessions: Sessions;
  readonly #log: Log;
  readonly #backoff = new Backoff();
  #most = BATCH_EVENTS;

  constructor(held: HeldCall, link: Link, sessions: Sessions, log: Log) {
    this.#held = held;
    this.#link = link;
    this.#sessions = sessions;
    this.#log = log;
  }

  /** Send until nothing is left to send. */
  async run(): Promise<void> {
    const held = this.#held;
    while (!this.#finished()) {
      if (held.stale || !held.said.length) {
        held.news.clear();
        await held.news.wait();
        continue;
      }
      const session = await this.#sessions.current();
      if (!session) return;
      const batch = held.said.batch(this.#most);
      if (batch && !held.stale) await this.#send(session, batch);
    }
  }

  #finished(): boolean {
    const { dropped, said, stale, until, over } = this.#held;
    // A later attempt, if there is one, is answered from memory.
    return dropped || said.settled || (over.isSet && said.ended && (stale || now() > until));
  }

  async #send(session: Session, batch: Batch): Promise<void> {
    const held = this.#held;
    const { attempt } = batch;
    try {
      const n = await this.#link.tell(session.id, held.id, attempt, batch.events);
      if (held.said.ack({ attempt, n })) {
        this.#backoff.reset();
        held.heard();
      } else if (attempt === held.said.attempt) await this.#pause();
    } catch (error) {
      if (error instanceof SessionOver) this.#sessions.end(session);
      else if (error instanceof Stale) {
        if (attempt === held.said.attempt) held.doubt();
      } else if (error instanceof Gap) {
        if (!held.said.expect(attempt, error.expected)) {
          this.#log('error', `the hub lost events of ${held.id} that it had acknowledged`, {});
          held.drop('the hub lost what was said');
        }
        await this.#pause();
      } else if (error instanceof BadRequest) this.#refused(batch, error);
      else if (error instanceof DragomanError) await this.#pause((error.retryAfterS ?? 0) * 1000);
      else throw error;
    }
  }

  /** What the hub will never take: found by sending one at a time, and told as the call's failure. */
  #refused({ attempt, events }: Batch, refusal: BadRequest): void {
    const held = this.#held;
    if (attempt !== held.said.attempt) return;
    if (events.length > 1) {
      this.#most = 1;
      return;
    }
    const event = textOf(events[0] ?? {}, 'event') ?? '';
    this.#log('error', `the hub refused a ${event} of ${held.id}: ${refusal.sentence}`, {});
    if (held.said.failed) {
      held.drop('the hub takes nothing of it');
      return;
    }
    const message = `The hub did not take what the agent said (${event}): ${refusal.sentence}`;
    held.said.fail(said('error', { code: 'AGENT_ERROR', message, details: { reason: 'refused_by_hub' } }));
    held.stop('the hub refused what it said');
  }

  /** Wait, or until something says that trying again is worth it. */
  async #pause(atLeastMs = 0): Promise<void> {
    this.#held.again.clear();
    await this.#held.again.wait(Math.max(atLeastMs, this.#backoff.nextMs()));
  }
}
