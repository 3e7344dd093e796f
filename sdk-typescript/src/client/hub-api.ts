/** Requests to one hub: tried again where that makes sense, refusals thrown as errors, streams taken up again. */
import { HubUnreachable, InputRequired, type DragomanError } from '../errors.js';
import { isObject, textOf, type Json, type JsonObject } from '../json.js';
import { errorOfReply, noHub } from '../refusals.js';
import { now } from '../waiting.js';
import { ACCEPTED_MS, type Asked } from './asking.js';
import { CallHandle } from './handles.js';
import type { Events, HubHttp, Reply } from './http.js';
import { resultOfReply, type CallResult, type StreamEvent } from './results.js';
import { tried } from './retrying.js';
import { Ears } from './streams.js';

const REQUEST_MS = 30_000;
const GRACE_MS = 10_000; // for the hub to say that a call's time is over
const IDLE_MS = 25_000; // the hub says something at least every 10 s

/** What is asked beside method and path. */
export interface Request {
  readonly body?: Json | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly graceMs?: number;
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** One hub. */
export class HubApi {
  readonly #retries: number;
  constructor(
    /** How it is reached. */
    readonly http: HubHttp,
    retries: number,
  ) {
    this.#retries = retries;
  }

  /** The result of a call. Throws what it failed with. */
  async call(asked: Asked): Promise<CallResult> {
    return resultOfReply(await this.ask('POST', '/v1/a2a/call', { ...asked, graceMs: GRACE_MS }));
  }

  /** The object that is answered. Throws the refusal, HubUnreachable. */
  async object(method: string, path: string, request: Request = {}): Promise<JsonObject> {
    const { body } = await this.ask(method, path, request);
    if (isObject(body)) return body;
    throw noHub();
  }

  /** An answer that is no refusal. Throws the refusal, HubUnreachable. */
  async ask(method: string, path: string, request: Request = {}): Promise<Reply> {
    const { timeoutMs = REQUEST_MS, graceMs = 0, repeatable = true, signal } = request;
    const deadline = now() + timeoutMs;
    const attempt = async (): Promise<Reply> => {
      const reply = await this.http.ask(method, path, { ...request, timeoutMs: deadline - now() + graceMs });
      if (reply.status < 200 || reply.status >= 300) throw this.#refusal(reply.status, reply.headers, reply.body);
      return reply;
    };
    return await tried(attempt, { retries: this.#retries, deadline, repeatable, signal });
  }

  /** What happens in a call, over as many connections as it takes; the first one makes the call, if one is asked. */
  async *events(ears: Ears, asked: Asked | undefined): AsyncGenerator<StreamEvent> {
    const deadline = now() + (asked?.timeoutMs ?? ACCEPTED_MS) + GRACE_MS;
    const repeatable = asked?.repeatable ?? true;
    const open = (): Promise<Events> => this.#connect(ears, asked, deadline);
    let connected = false;
    while (!ears.ended) {
      let lost = new HubUnreachable('The stream ended before its call did.', { sent: true, reason: 'reset' });
      let events: Events | undefined;
      try {
        const trying = { retries: this.#retries, deadline, repeatable, signal: asked?.signal };
        events = connected && ears.callId ? await open() : await tried(open, trying);
        connected = true;
        yield* ears.listen(events);
      } catch (error) {
        if (error instanceof InputRequired) error.handle = new CallHandle(this, ears.callId);
        if (!(error instanceof HubUnreachable) || !connected) throw error;
        lost = error;
      } finally {
        events?.close();
      }
      if (ears.ended) return;
      if (now() >= deadline || !(ears.callId || repeatable)) throw lost;
      await ears.wait(lost, asked?.signal);
      asked?.signal?.throwIfAborted();
    }
  }

  /** A stream that has begun. Throws what was answered in its place. */
  async #connect(ears: Ears, asked: Asked | undefined, deadline: number): Promise<Events> {
    const limits = { timeoutMs: deadline - now(), signal: asked?.signal };
    const events =
      ears.callId || !asked
        ? await this.http.stream(
            'GET',
            `${callPath(ears.callId)}/stream`,
            { ...limits, headers: lastHeard(ears) },
            IDLE_MS,
          )
        : await this.http.stream(
            'POST',
            '/v1/a2a/call/stream',
            { ...limits, body: asked.body, headers: asked.headers },
            IDLE_MS,
          );
    if (events.isStream) return events;
    try {
      throw this.#refusal(events.status, events.headers, await events.whole());
    } finally {
      events.close();
    }
  }

  #refusal(status: number, headers: Headers, body: Json | undefined): DragomanError {
    const error = errorOfReply(status, headers, body);
    if (error instanceof InputRequired) {
      error.handle = new CallHandle(this, textOf(error.details, 'continue_call_id') ?? error.callId ?? '');
    }
    return error;
  }
}

/** Where a call is. */
export function callPath(callId: string): string {
  return `/v1/a2a/call/${encodeURIComponent(callId)}`;
}

function lastHeard(ears: Ears): Record<string, string> {
  return ears.after ? { 'last-event-id': String(ears.after) } : {};
}
