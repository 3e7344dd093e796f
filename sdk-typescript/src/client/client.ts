/**
 * The caller's side: agents are called, found, registered and rated through one hub, whatever dialect each speaks.
 *
 * A client may be made at module level, and is never closed. What a running handler is doing passes through by itself
 * (`asking.ts`); what never reached the hub is tried again (`retrying.ts`); streams are taken up where they broke off.
 */
import type { Tool } from '../agent/tools.js';
import { arrayOf, isObject, textOf, written, type JsonObject } from '../json.js';
import { currentScope, type Scope } from '../scope.js';
import { ACCEPTED_MS, askFor, CALL_MS, newId, STREAM_MS, type CallOptions } from './asking.js';
import { CallHandle } from './handles.js';
import { HubHttp, type Fetch } from './http.js';
import { callPath, HubApi } from './hub-api.js';
import { remoteTool, type RemoteTool } from './remote-tool.js';
import { foundOf, type CallResult, type FoundAgent, type StreamEvent } from './results.js';
import { WAITS_MS } from './retrying.js';
import type { Settings } from './settings.js';
import { stepsBody, type Step } from './steps.js';
import { Ears } from './streams.js';

const PAGE = 100;
// Where an agent's card is; under /agents/{}/ unless it says otherwise.
const CARDS: Readonly<Record<string, string>> = {
  platform: '/v1/a2a/agents/{}/card',
  directory: '/a2a/agents/{}',
  'a2a-1.0': '.well-known/agent-card.json',
  'a2a-0.3': '.well-known/agent-card.json',
  agentvault: 'agent-card.json',
  envelope: 'agent-card.json',
  dotted: '.well-known/agent-card',
};

/** How a client is made. */
export interface ClientOptions extends Settings {
  /** How often something that never reached the hub is tried again: 3; 0 turns it off. */
  retries?: number | undefined;
  /** In place of the global `fetch`. */
  fetch?: Fetch | undefined;
}

/** A call that nobody waits for. */
export interface SubmitOptions extends Omit<CallOptions, 'signal'> {
  /** Where the hub posts the outcome. */
  callbackUrl?: string | undefined;
  /** Headers that go with it. */
  callbackHeaders?: Readonly<Record<string, string>> | undefined;
  /** The steps that follow it, in the hub. */
  then?: readonly (Step | readonly Step[])[] | undefined;
}

/** Which agents are looked for. */
export interface Filters {
  /** They have this skill. */
  skill?: string | undefined;
  /** Words that are looked for. */
  q?: string | undefined;
  /** They have this tag, or all of these. */
  tag?: string | readonly string[] | undefined;
  /** They can do this, such as `streaming`. */
  capability?: string | undefined;
  /** They speak this dialect. */
  dialect?: string | undefined;
  /** How they are, such as `active`. */
  status?: string | undefined;
  /** At least so well rated. */
  minRating?: number | undefined;
  /** At most so slow, for nineteen calls of twenty. */
  maxP95Ms?: number | undefined;
  /** At least so often there, from 0 to 1. */
  minAvailability?: number | undefined;
  /** At most so many. */
  limit?: number | undefined;
}

/** One hub, as callers use it. The environment is read when it is made; nothing is opened. */
export class A2AClient {
  #api: HubApi;
  #scope: Scope | undefined;

  constructor(options: ClientOptions = {}) {
    this.#api = new HubApi(new HubHttp(options, options.fetch), options.retries ?? WAITS_MS.length);
  }

  /** The hub's address. */
  get url(): string {
    return this.#api.http.url;
  }

  /** Call a skill and wait for its result. Throws what it failed with, and InputRequired where the agent asks. */
  async call<Result = JsonObject>(options: CallOptions): Promise<Result> {
    return (await this.callFull(options)).result as Result;
  }

  /** The same, with all that is known of the call: id, text, artifacts, usage, timing, trace. */
  async callFull(options: CallOptions): Promise<CallResult> {
    return await this.#api.call(askFor(options, { scope: this.#current, mostMs: CALL_MS }));
  }

  /**
   * Call a skill and hear what happens: start, progress and chunks, then complete with the result.
   *
   * A lost connection is taken up again by itself. Leaving the iteration does not end the call.
   */
  async *stream(options: CallOptions): AsyncGenerator<StreamEvent> {
    yield* this.#api.events(new Ears(), askFor(options, { scope: this.#current, mostMs: STREAM_MS }));
  }

  /** Have a call carried out without waiting for it: it is on the hub's disk when this returns. */
  async submit(options: SubmitOptions): Promise<CallHandle> {
    const { callbackUrl, callbackHeaders, then, ...call } = options;
    const keyed = { ...call, idempotencyKey: call.idempotencyKey ?? newId('key_') };
    const asked = askFor(keyed, { scope: this.#current, mostMs: ACCEPTED_MS, waited: false });
    const callback = callbackUrl ? { url: callbackUrl, headers: callbackHeaders } : undefined;
    const body = { ...asked.body, callback, then: then && stepsBody(then) };
    const answer = await this.#api.object('POST', '/v1/a2a/call/async', { body, headers: asked.headers });
    return this.handle(textOf(answer, 'call_id') ?? '');
  }

  /** A call that was made before, by this process or another one with the same key. */
  handle(callId: string): CallHandle {
    return new CallHandle(this.#api, callId);
  }

  /** The agents that fit, best first, page after page. */
  async *discover(filters: Filters = {}): AsyncGenerator<FoundAgent> {
    const { tag, limit = Infinity, minRating, maxP95Ms, minAvailability, ...words } = filters;
    const figures = { min_rating: minRating, max_p95_ms: maxP95Ms, min_availability: minAvailability };
    const query = new URLSearchParams(written({ ...words, ...figures }));
    for (const each of typeof tag === 'string' ? [tag] : (tag ?? [])) query.append('tag', each);
    let left = limit;
    while (left > 0) {
      query.set('limit', String(Math.min(left, PAGE)));
      const page = await this.#api.object('GET', `/v1/a2a/discover?${query.toString()}`);
      const found = arrayOf(page, 'agents').filter(isObject).slice(0, left);
      for (const agent of found) yield foundOf(agent);
      left -= found.length;
      const cursor = textOf(page, 'next_cursor');
      if (!cursor) return;
      query.set('cursor', cursor);
    }
  }

  /** The card of an agent, in the words of any dialect. Throws AgentNotFound. */
  async card(agentId: string, dialect = 'platform'): Promise<JsonObject> {
    const place = CARDS[dialect];
    if (!place) throw new TypeError(`There is no dialect ${dialect}; there are: ${Object.keys(CARDS).join(', ')}.`);
    const path = place.startsWith('/') ? place : `/agents/{}/${dialect}/${place}`;
    return await this.#api.object('GET', path.replace('{}', encodeURIComponent(agentId).replace('%40', '@')));
  }

  /** Register an agent by its card, in any dialect, or by the URL where it answers; what the hub said to it. */
  async register(cardOrUrl: string | object, more: object = {}): Promise<JsonObject> {
    const what: object = typeof cardOrUrl === 'string' ? { url: cardOrUrl } : { agent_card: cardOrUrl };
    return await this.#api.object('POST', '/v1/a2a/registry', { body: { ...what, ...more } as JsonObject });
  }

  /** Say how good an ended call of yours was, from 1 to 5; a later word replaces an earlier one. */
  async rate(callId: string, stars: number, comment?: string): Promise<JsonObject> {
    return await this.#api.object('POST', `${callPath(callId)}/rating`, { body: { rating: stars, comment } });
  }

  /** A skill of an agent as a tool of a model; its input schema is read from the agent's card on first use. */
  tool<Result = JsonObject>(described: RemoteTool): Tool<JsonObject, Result> {
    return remoteTool<Result>(described, () => this);
  }

  /** @internal A client over a connection that is somebody else's. */
  static over(http: HubHttp): A2AClient {
    const made = new A2AClient({ baseUrl: http.url });
    made.#api = new HubApi(http, WAITS_MS.length);
    return made;
  }

  /** @internal The same client, whose calls are made for that scope. */
  within(scope: Scope): A2AClient {
    const bound = new A2AClient({ baseUrl: this.url });
    bound.#api = this.#api;
    bound.#scope = scope;
    return bound;
  }

  get #current(): Scope | undefined {
    return this.#scope ?? currentScope();
  }
}
