/**
 * An agent's process at the hub it connects to: one session after the other, kept until the process is told to stop.
 *
 *     open ─▶ hold: listen to frames │ renew it every heartbeat ─▶ over ─▶ open, with the calls that still run ─▶ …
 */
import type { Agent } from '../agent/agent.js';
import type { A2AClient } from '../client/client.js';
import { DragomanError } from '../errors.js';
import { numberOf, textOf, textsOf, type JsonObject } from '../json.js';
import { noHub } from '../refusals.js';
import { keepScopes } from '../scope.js';
import { VERSION } from '../version.js';
import { Flag, now, sleep } from '../waiting.js';
import type { Log } from '../work/log.js';
import { Work } from '../work/work.js';
import { Backoff } from './backoff.js';
import { Calls, type Begin } from './calls.js';
import { SessionOver, type Link } from './link.js';
import { Session, Sessions } from './sessions.js';

const FINISH_MS = 30_000; // for calls that run when the process is told to stop
const CLEAN_UP_MS = 6000; // for handlers that were cancelled; they have five
const LEAVE_MS = 3000;
const QUICKEST_MS = 100; // between two heartbeats, whatever the hub says
const STEADY_MS = 500; // what lasted so long did not fail at once

/** One agent, connected to one hub, until it is stopped. */
export class Connection {
  readonly #agent: Agent;
  readonly #link: Link;
  readonly #log: Log;
  /** Set when the hub has taken the agent for the first time. */
  readonly opened = new Flag();
  /** At the end: handlers did not stop when they were told to. */
  stuck = false;
  readonly #stopping = new Flag();
  readonly #life = new AbortController();
  readonly #sessions = new Sessions();
  readonly #calls: Calls;
  #lost = false;

  constructor(agent: Agent, link: Link, client: A2AClient, log: Log) {
    this.#agent = agent;
    this.#link = link;
    this.#log = log;
    const begin: Begin = (call, emit) => new Work(agent, call, client, log, emit);
    this.#calls = new Calls(begin, agent.concurrency, link, this.#sessions, log);
  }

  /** Take no new calls, finish what runs, leave. */
  stop(): void {
    this.#stopping.set();
  }

  /** Work until `stop`. Throws the error of a hub that does not take this agent. */
  async run(): Promise<void> {
    await keepScopes();
    const keeping = this.#keep();
    try {
      await Promise.race([keeping, this.#stopping.wait().then(() => this.#finish())]);
    } finally {
      this.#life.abort();
      this.#calls.drop('all');
      // However it ends: a session that nobody leaves has its calls wait for the end of its lease.
      const session = this.#sessions.open;
      this.#sessions.close();
      await keeping.catch(() => undefined);
      if (session) await this.#leave(session);
    }
  }

  /** One session after the other, until the end. */
  async #keep(): Promise<void> {
    const backoff = new Backoff();
    while (!this.#life.signal.aborted) {
      const session = await this.#open();
      if (!session) return;
      const began = now();
      await this.#hold(session);
      if (now() - began >= STEADY_MS) backoff.reset();
      else await sleep(backoff.nextMs(), this.#life.signal);
    }
  }

  /** A new session; waits for a hub that is away, throws what the hub refuses for good. */
  async #open(): Promise<Session | undefined> {
    const { signal } = this.#life;
    const backoff = new Backoff();
    const more = { card: this.#agent.card(), sdk: `agentplatform-typescript/${VERSION}` };
    while (!signal.aborted) {
      try {
        const told = await this.#link.open(this.#hello(more), signal);
        const session = sessionOf(told);
        this.#found();
        this.#sessions.begin(session);
        this.#calls.giveUp(textsOf(told, 'drop'));
        this.#calls.retry();
        this.opened.set();
        return session;
      } catch (error) {
        if (signal.aborted) return undefined;
        await sleep(error instanceof SessionOver ? backoff.nextMs() : this.#bear(error, backoff), signal);
      }
    }
    return undefined;
  }

  /** Listen and renew, both, until the session is over. */
  async #hold(session: Session): Promise<void> {
    const held = new AbortController();
    const end = (): void => held.abort();
    this.#life.signal.addEventListener('abort', end);
    const both = [this.#listen(session, held.signal), this.#renew(session, held.signal)];
    try {
      await Promise.race([...both, session.over.wait()]);
    } finally {
      end();
      this.#life.signal.removeEventListener('abort', end);
      await Promise.allSettled(both);
    }
  }

  /** Take frames as long as the session lasts, on one stream after the other. */
  async #listen(session: Session, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    while (!signal.aborted) {
      const began = now();
      let pause: number | undefined;
      let lost: unknown;
      try {
        pause = await this.#read(session, backoff, signal);
      } catch (error) {
        lost = error;
      }
      if (signal.aborted) return;
      if (lost instanceof SessionOver) return this.#sessions.end(session);
      if (now() - began >= STEADY_MS) backoff.reset();
      if (lost !== undefined) pause = this.#bear(lost, backoff);
      await sleep(pause ?? backoff.nextMs(), signal);
    }
  }

  /** Take frames from one stream to its end; when to come back, where the hub says so. */
  async #read(session: Session, backoff: Backoff, signal: AbortSignal): Promise<number | undefined> {
    let pause: number | undefined;
    for await (const frame of this.#link.frames(session.id, session.received, signal)) {
      this.#found();
      if (frame.event === 'hello') this.#calls.retry();
      // The hub ends the stream itself, when no call needs it any more.
      else if (frame.event === 'drain') pause = Math.max(0, numberOf(frame.data, 'reconnect_after_ms') ?? 0);
      // One that was sent again after a lost connection is known by its number.
      else if (frame.id > session.received) {
        session.received = frame.id;
        backoff.reset();
        this.#calls.take(frame);
      }
    }
    return pause;
  }

  /** Say again and again that this process lives, and which calls with it. */
  async #renew(session: Session, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    let pause = session.heartbeatMs;
    for (;;) {
      await sleep(pause, signal);
      if (signal.aborted) return;
      try {
        await this.#heartbeat(session, signal);
        pause = session.heartbeatMs;
        backoff.reset();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof SessionOver) return this.#sessions.end(session);
        pause = Math.min(this.#bear(error, backoff), session.heartbeatMs);
      }
    }
  }

  async #heartbeat(session: Session, signal?: AbortSignal): Promise<void> {
    const running = this.#calls.running();
    const hello = this.#hello({ session_id: session.id, received: session.received, running });
    const told = await this.#link.open(hello, signal);
    this.#found();
    // The frame of a later attempt may be on its way here, so nothing is cancelled at once.
    this.#calls.doubt(textsOf(told, 'drop'), running);
  }

  #hello(more: JsonObject): JsonObject {
    return { agent_id: this.#agent.id, capacity: this.#calls.capacity, running: this.#calls.running(), ...more };
  }

  /** How long to wait where that may help; throws the error where it does not. */
  #bear(error: unknown, backoff: Backoff): number {
    if (!(error instanceof DragomanError) || !error.retryable) throw error;
    if (!this.#lost) this.#log('warning', `${error.sentence}. Trying again until it answers.`, {});
    this.#lost = true;
    return Math.max((error.retryAfterS ?? 0) * 1000, backoff.nextMs(this.#calls.size > 0));
  }

  #found(): void {
    if (this.#lost) this.#log('warning', 'The hub answers again.', {});
    this.#lost = false;
  }

  /** No new calls, 30 s for those that run; what is not done then goes to whoever comes next. */
  async #finish(): Promise<void> {
    const calls = this.#calls;
    calls.leaving = true;
    calls.drop('asking');
    const session = this.#sessions.open;
    if (session && calls.size) await this.#refuseCalls(session);
    if (await calls.finished(FINISH_MS)) return;
    calls.drop('all');
    this.stuck = !(await calls.finished(CLEAN_UP_MS));
  }

  /** Tell the hub at once that nothing more should come; without it, what comes is handed back. */
  async #refuseCalls(session: Session): Promise<void> {
    try {
      await this.#heartbeat(session);
    } catch (error) {
      if (error instanceof SessionOver) this.#sessions.end(session);
      else this.#log('info', 'The hub was not told that no call should come.', { error });
    }
  }

  /** Leave; a hub that cannot be told notices by itself. */
  async #leave(session: Session): Promise<void> {
    try {
      await this.#link.leave(session.id, LEAVE_MS);
    } catch (error) {
      this.#log('info', 'The hub was not told that the agent leaves.', { error });
    }
  }
}

function sessionOf(told: JsonObject): Session {
  const id = textOf(told, 'session_id');
  if (id === undefined) throw noHub();
  return new Session(id, Math.max((numberOf(told, 'heartbeat_s') ?? 10) * 1000, QUICKEST_MS));
}
