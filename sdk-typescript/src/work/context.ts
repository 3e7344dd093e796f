/** What a handler knows of its call, and may do about it: report, ask, refuse, call others. */
import { published, type Schema } from '../agent/schema.js';
import type { CallOptions } from '../client/asking.js';
import type { A2AClient, Filters } from '../client/client.js';
import type { FoundAgent, StreamEvent } from '../client/results.js';
import type { Message } from '../content.js';
import type { JsonObject } from '../json.js';
import type { Usage } from '../run/models.js';
import type { Scope } from '../scope.js';
import { now } from '../waiting.js';
import type { Call, Caller, Reference } from './incoming.js';
import type { CallLine } from './line.js';
import { CallLog, type Log } from './log.js';
import { answerAs, wordsOf } from './questions.js';
import { artifactData, partsOf, type ArtifactOptions } from './returned.js';

/** The handler refused the call. */
export class Refused extends Error {}

/** What was used up, and by which model. */
export interface Used extends Usage {
  /** The model. */
  model?: string | undefined;
}

/** One call, to the handler that carries it out. After a cancel everything that is awaited here throws. */
export class Context {
  /** Lines for the local log, and for the call's timeline in the hub. */
  readonly log: CallLog;
  readonly #call: Call;
  readonly #line: CallLine;
  readonly #scope: Scope;
  readonly #client: A2AClient;
  #artifacts = 0;
  #artifact = ''; // the id of the last one

  /** @internal */
  constructor(call: Call, line: CallLine, scope: Scope, client: A2AClient, log: Log) {
    this.#call = call;
    this.#line = line;
    this.#scope = scope;
    this.#client = client;
    this.log = new CallLog(call.id, (data) => line.log(data), log);
  }

  /** Say how far the work is, from 0 to 1, or what is being done. */
  async progress(progress?: number, message?: string): Promise<void> {
    const share = progress === undefined ? undefined : Math.min(1, Math.max(0, progress));
    await this.#line.say('progress', { progress: share, message });
  }

  /** Send a chunk of the answer. */
  async stream(text: string): Promise<void> {
    if (text) await this.#line.say('chunk', { content: text });
  }

  /** Send an output beside the answer, whole or in pieces; returns its id. */
  async artifact(content: unknown, options: ArtifactOptions = {}): Promise<string> {
    const named = options.id ?? options.name ?? (options.append ? this.#artifact : '');
    const id = named || `artifact-${++this.#artifacts}`;
    this.#artifact = id;
    await this.#line.say('artifact', artifactData(partsOf(content), { ...options, id }));
    return id;
  }

  /** Ask the caller and wait for its words; what was answered before a crash is returned at once. */
  async ask(prompt: string, schema?: undefined, timeoutS?: number): Promise<string>;
  /** Ask the caller and wait; an answer that does not fit the schema is asked for again. Throws AgentTimeout. */
  async ask<Value>(prompt: string, schema: Schema<Value>, timeoutS?: number): Promise<Value>;
  async ask<Value>(prompt: string, schema?: Schema<Value>, timeoutS?: number): Promise<Value | string> {
    const shape = published(schema, 'input');
    let question = prompt;
    for (;;) {
      const answer = await this.#line.ask('ask', { prompt: question, schema: shape }, timeoutS);
      if (!schema) return wordsOf(answer);
      const fits = await answerAs(answer, schema);
      if (fits) return fits.value;
      question = `${prompt} (The answer does not fit what is asked for.)`;
    }
  }

  /** Say that the caller has to authenticate elsewhere first; returns what it says after that. */
  async requireAuth(message: string): Promise<Message> {
    return await this.#line.ask('auth', { message });
  }

  /** End the call as rejected. */
  refuse(message: string): never {
    throw new Refused(message);
  }

  /** Note what was used up; the call's account is the sum. */
  usage(used: Used): void {
    const sums = { ...this.#line.usage };
    const added = { input_tokens: used.inputTokens, output_tokens: used.outputTokens, cost_usd: used.costUsd };
    for (const [name, value] of Object.entries(added)) if (value) sums[name] = Number(sums[name] ?? 0) + value;
    if (used.model !== undefined) sums['model'] = used.model;
    this.#line.use(sums);
  }

  /** Call an agent, as the client does. */
  async call<Result = JsonObject>(options: CallOptions): Promise<Result> {
    return await this.#client.call<Result>(options);
  }

  /** Call an agent and hear what it does, as the client does. */
  streamCall(options: CallOptions): AsyncGenerator<StreamEvent> {
    return this.#client.stream(options);
  }

  /** Find agents, as the client does. */
  discover(filters: Filters = {}): AsyncGenerator<FoundAgent> {
    return this.#client.discover(filters);
  }

  /** Aborted when the call is cancelled, or its time is over; the handler then has 5 s to clean up. */
  get signal(): AbortSignal {
    return this.#line.signal;
  }

  /** Whether the call was cancelled. */
  get cancelled(): boolean {
    return this.#line.signal.aborted;
  }

  /** The call's id, the same on every attempt. */
  get callId(): string {
    return this.#call.id;
  }

  /** Which delivery of the call this is, from 1. */
  get attempt(): number {
    return this.#call.attempt;
  }

  /** The skill that was called; nothing for a message that names none. */
  get skill(): string | undefined {
    return this.#call.skill;
  }

  /** What was sent, as a message. */
  get message(): Message {
    return this.#call.message;
  }

  /** Who calls. */
  get caller(): Caller {
    return this.#call.caller;
  }

  /** The conversation that the call belongs to. */
  get conversationId(): string {
    return this.#call.conversationId;
  }

  /** The trace that the call belongs to. */
  get traceId(): string | undefined {
    return this.#call.traceId;
  }

  /** low, normal, high or urgent. */
  get priority(): string {
    return this.#call.priority;
  }

  /** What the caller said beside its input. */
  get metadata(): JsonObject {
    return this.#call.metadata;
  }

  /** Earlier turns of this conversation with this caller, oldest first. */
  get history(): readonly Message[] {
    return this.#call.history;
  }

  /** Earlier calls that the message refers to, with their artifacts. */
  get references(): readonly Reference[] {
    return this.#call.references;
  }

  /** When the answer has to be there. */
  get deadline(): Date | undefined {
    return this.#call.deadline;
  }

  /** How many seconds are left, never less than 0. */
  get remainingS(): number | undefined {
    const { deadline } = this.#scope;
    return deadline === undefined ? undefined : Math.max(0, deadline - now()) / 1000;
  }
}
