/**
 * The way to the hub: POSTs up, Server-Sent Events down. Repeats nothing by itself.
 *
 * The session is opened and kept with the token that the user gave. What the hub hands out in return is a token of the
 * agent itself, renewed by every heartbeat: calls that handlers make are shown that one.
 */
import type { HubHttp, Reply } from '../client/http.js';
import type { DragomanError } from '../errors.js';
import { isObject, numberOf, objectOf, parsed, textOf, type Json, type JsonObject } from '../json.js';
import { errorOfReply, noHub } from '../refusals.js';

const CONNECT = '/v1/agents/connect';
const ANSWER_MS = 20_000; // for the answer to a POST
const SILENT_MS = 25_000; // without a byte a stream is lost; the hub says something every 10 s
const STREAM_MS = 24 * 3600 * 1000; // then a new one is opened

/** One thing that the hub says: its number in the session (0 for what has none), its name, and what it says. */
export interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: JsonObject;
}

/** The hub does not know the session, or no longer. */
export class SessionOver extends Error {}

/** The hub has not all that came before; it expects the event of that number. */
export class Gap extends Error {
  constructor(readonly expected: number) {
    super(`event ${expected} is expected`);
  }
}

/** The call is over, or goes on under a later attempt. */
export class Stale extends Error {}

/** A hub at the other end of HTTP; `acting` is what the agent's own calls go over. */
export class Link {
  readonly #http: HubHttp;
  readonly #acting: HubHttp;
  constructor(http: HubHttp, acting: HubHttp) {
    this.#http = http;
    this.#acting = acting;
  }

  /** Open a session or, where `hello` names one, renew it; takes the token that comes with it. Throws SessionOver. */
  async open(hello: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    const told = answer(await this.#http.ask('POST', CONNECT, { body: hello, timeoutMs: ANSWER_MS, signal }));
    const token = textOf(told, 'token');
    if (token) this.#acting.useToken(token);
    return told;
  }

  /** What the hub says after that number; ends when the connection is lost. Throws SessionOver. */
  async *frames(sessionId: string, after: number, signal: AbortSignal): AsyncGenerator<Frame> {
    const headers: Record<string, string> = after ? { 'last-event-id': String(after) } : {};
    const events = await this.#http.stream(
      'GET',
      sessionPath(sessionId),
      { headers, timeoutMs: STREAM_MS, signal },
      SILENT_MS,
    );
    try {
      if (!events.isStream) throw refusal(events.status, events.headers, await events.whole());
      for await (const { id, name, data } of events) {
        const said = parsed(data);
        yield { id: /^\d+$/.test(id) ? Number(id) : 0, event: name, data: isObject(said) ? said : {} };
      }
    } finally {
      events.close();
    }
  }

  /** Tell events of a call; the number up to which all are on disk. Throws Gap, Stale, SessionOver. */
  async tell(sessionId: string, callId: string, attempt: number, events: JsonObject[]): Promise<number> {
    const body = { session_id: sessionId, attempt, events };
    const path = `/v1/agents/calls/${encodeURIComponent(callId)}/events`;
    const reply = await this.#http.ask('POST', path, { body, timeoutMs: ANSWER_MS });
    // A call that the hub does not know is over, too.
    if (reply.status === 410 || (reply.status === 404 && !isSessionOver(reply.body))) throw new Stale();
    const expected = reply.status === 409 && isObject(reply.body) ? numberOf(reply.body, 'expected') : undefined;
    if (expected !== undefined) throw new Gap(expected);
    const acked = numberOf(answer(reply), 'acked');
    if (acked === undefined) throw noHub();
    return acked;
  }

  /** End the session; calls that were not started go to others. */
  async leave(sessionId: string, timeoutMs: number): Promise<void> {
    await this.#http.ask('DELETE', sessionPath(sessionId), { timeoutMs });
  }
}

function sessionPath(sessionId: string): string {
  return `${CONNECT}?session=${encodeURIComponent(sessionId)}`;
}

function answer({ status, headers, body }: Reply): JsonObject {
  if (status !== 200) throw refusal(status, headers, body);
  if (!isObject(body)) throw noHub();
  return body;
}

function refusal(status: number, headers: Headers, body: Json | undefined): SessionOver | DragomanError {
  return status === 404 && isSessionOver(body) ? new SessionOver() : errorOfReply(status, headers, body);
}

function isSessionOver(body: Json | undefined): boolean {
  return isObject(body) && objectOf(body, 'error')['code'] === 'SESSION_OVER';
}
