/**
 * One call, carried out by its handler: within its time, to exactly one last event.
 *
 *     start ─▶ progress, chunk, artifact, ask, … ─▶ complete │ error │ cancelled │ rejected
 *
 * Does not number or send what is said (`connect/` does), and does not count how many calls run at once.
 */
import type { Agent } from '../agent/agent.js';
import type { Skill } from '../agent/skills.js';
import type { A2AClient } from '../client/client.js';
import { Text, type Part } from '../content.js';
import { AgentError, AgentTimeout, DragomanError, SkillNotFound } from '../errors.js';
import { filled, textOf, type JsonObject } from '../json.js';
import { within, type Scope } from '../scope.js';
import { Flag, later, now } from '../waiting.js';
import { Context, Refused } from './context.js';
import { readCall, type Call } from './incoming.js';
import { CallLine, type Emit } from './line.js';
import type { Log } from './log.js';
import { answerOf, artifactData, PARTS, partsOf, RESULT, type Answer } from './returned.js';

const CLEAN_UP_MS = 5000; // for a handler that was told to end
const GRACE_MS = 1000; // for the hub to say first that a caller's time is over

type Told = readonly [event: string, data: JsonObject];

/** One call in the hands of its agent. */
export class Work {
  readonly #agent: Agent;
  readonly #given: JsonObject;
  readonly #client: A2AClient;
  readonly #log: Log;
  readonly #line: CallLine;
  readonly #settled = new Flag(); // the handler is done, or had its time to be
  readonly #timers: (() => void)[] = [];
  #end: Told | undefined;
  #late: number | undefined; // the time it had, when that is over

  constructor(agent: Agent, given: JsonObject, client: A2AClient, log: Log, emit: Emit) {
    this.#agent = agent;
    this.#given = given;
    this.#client = client;
    this.#log = log;
    this.#line = new CallLine(emit);
  }

  /** Whether it waits for its caller; it takes no capacity then. */
  get asking(): boolean {
    return this.#line.asking;
  }

  /** What the caller said to its question. */
  answer(message: JsonObject): void {
    this.#line.answer(message);
  }

  /** Tell the handler to end: it has 5 s to clean up. */
  cancel(reason: string): void {
    if (this.#line.signal.aborted) return;
    this.#line.cancel(reason);
    this.#timers.push(later(CLEAN_UP_MS, () => this.#settled.set()));
  }

  /** Carry the call out and tell all of it; returns when its handler is done, or had its time to be. */
  async run(): Promise<void> {
    if (!this.#line.signal.aborted) {
      await this.#line.say('start', {});
      void this.#carryOut().finally(() => this.#settled.set());
      await this.#settled.wait();
    }
    for (const cancel of this.#timers) cancel();
    await this.#line.end(...this.#last());
  }

  /** The last event: what became of the handler, unless somebody ended it. */
  #last(): Told {
    if (this.#late !== undefined) {
      const details = { timeout_ms: Math.round(this.#late) };
      return errorEvent(new AgentTimeout(`The agent was not done within ${this.#late / 1000} s.`, { details }));
    }
    return this.#line.signal.aborted || !this.#end ? ['cancelled', {}] : this.#end;
  }

  async #carryOut(): Promise<void> {
    try {
      const call = readCall(this.#given);
      this.#line.recorded(call.answers);
      const skill = pick(this.#agent, call.skill);
      const scope = this.#limited(call, skill);
      const client = this.#client.within(scope);
      const context = new Context(call, this.#line, scope, client, this.#log);
      scope.client = client;
      scope.context = context;
      this.#end = await within(scope, async () => {
        const value = await skill.carryOut(call, context);
        return await this.#completed(
          isPieces(value) ? await this.#streamed(value) : answerOf(partsOf(await skill.finished(value))),
        );
      });
    } catch (error) {
      this.#end = error instanceof Refused ? ['rejected', { message: error.message }] : errorEvent(this.#shown(error));
    }
  }

  /** The scope of the handler, with the time that the caller and the skill allow it. */
  #limited(call: Call, skill: Skill): Scope {
    const skillMs = skill.timeoutS === undefined ? Infinity : skill.timeoutS * 1000;
    const timeMs = Math.max(0, Math.min(call.timeMs ?? Infinity, skillMs));
    const limited = timeMs !== Infinity;
    if (limited) {
      const expire = (): void => {
        if (!this.#line.signal.aborted) this.#late = timeMs;
        this.cancel('its time is over');
      };
      this.#timers.push(later(Math.min(timeMs + GRACE_MS, skillMs), expire));
    }
    const { id: callId, conversationId, traceId, spanId, traceparent } = call;
    const deadline = limited ? now() + timeMs : undefined;
    return { callId, conversationId, traceId, spanId, traceparent, deadline, signal: this.#line.signal };
  }

  /** Words as chunks; a value at the end, yielded or returned, is the result; several values are all parts of it. */
  async #streamed(yielded: AsyncIterable<unknown>): Promise<Answer> {
    const values = yielded[Symbol.asyncIterator]();
    let held: readonly Part[] = [];
    let pieces = 0;
    try {
      for (;;) {
        const { done, value } = await values.next();
        const parts = partsOf(value);
        if (done && !parts.length) break;
        if (held.length) await this.#piece(held, pieces++);
        const words = parts.filter((part) => part instanceof Text && !part.metadata) as Text[];
        held = words.length < parts.length ? parts : [];
        const content = words.map((part) => part.text).join('');
        if (!held.length && content) await this.#line.say('chunk', { content });
        if (done) break;
      }
    } finally {
      await values.return?.();
    }
    if (!pieces || !held.length) return answerOf(held);
    await this.#piece(held, pieces);
    return { parts: [] };
  }

  async #piece(parts: readonly Part[], before: number): Promise<void> {
    await this.#line.say('artifact', artifactData(parts, { id: PARTS, append: before > 0, last: false }));
  }

  /** The end of a call that went well; parts go before it, beside the words that were streamed. */
  async #completed({ result, parts }: Answer): Promise<Told> {
    if (parts.length) {
      const beside = this.#line.streamed && !parts.some((part) => part instanceof Text);
      await this.#line.say('artifact', artifactData(parts, { id: beside ? PARTS : RESULT }));
    }
    return ['complete', { status: 'completed', result, usage: filled(this.#line.usage) }];
  }

  /** What a caller gets to see of an error: ours as they are, of any other the name alone; its words may be secret. */
  #shown(error: unknown): DragomanError {
    if (error instanceof DragomanError) return error;
    const skill = textOf(this.#given, 'skill') ?? 'the handler';
    const name = error instanceof Error ? error.constructor.name : typeof error;
    if (!this.#line.signal.aborted) this.#log('error', `${skill} failed`, { callId: this.#given['call_id'], error });
    return new AgentError(`${skill} failed: ${name}`, { details: { error: name } });
  }
}

/** The skill of that name; without one, whatever is there for messages: the default, else the only skill. */
function pick(agent: Agent, name: string | undefined): Skill {
  const { skills } = agent;
  const names = [...skills.keys()];
  const wanted = name ?? agent.defaultSkill ?? (names.length === 1 ? names[0] : undefined) ?? '';
  const found = skills.get(wanted);
  if (found) return found;
  const listed = `It has: ${names.join(', ') || 'none'}.`;
  const sentence = wanted
    ? `Agent ${agent.id} has no skill ${wanted}. ${listed}`
    : `Say which skill of ${agent.id} is meant, in metadata.skill. ${listed}`;
  throw new SkillNotFound(sentence, { details: { supported: names } });
}

function errorEvent(error: DragomanError): Told {
  const { code, sentence: message, retryable, details } = error;
  return ['error', { code, message, retryable, details: filled(details) }];
}

function isPieces(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
