/** One hub over HTTP: requests with its token, answers as JSON, streams as events. Repeats nothing, knows no path. */
import { HubUnreachable } from '../errors.js';
import { parsed, type Json } from '../json.js';
import { noHub } from '../refusals.js';
import { hubToken, hubUrl, type Settings } from './settings.js';
import { SseParser, type SseEvent } from './sse.js';
import { Watch } from './watch.js';

const EVENT_CHARACTERS = 64 * 1024 * 1024;

// What the machine says where no connection came to be: then nothing was sent.
const UNSENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ConnectionRefused: 'refused',
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  ENOTFOUND: 'unresolved',
  EAI_AGAIN: 'unresolved',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
};

/** How `fetch` is called here: a whole request. */
export type Fetch = (request: Request) => Promise<Response>;

/** A whole answer; `body` is undefined where it holds no JSON. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json | undefined;
}

/** What is asked, and how long it may take. */
export interface Asking {
  readonly body?: Json | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** One hub: its URL and the token that is meant for it. */
export class HubHttp {
  /** The hub's address. */
  readonly url: string;
  #token: string | undefined;
  readonly #fetch: Fetch;

  /** Read the environment where nothing is given; open nothing yet. */
  constructor(settings: Settings, fetching: Fetch = (request) => fetch(request)) {
    this.url = hubUrl(settings.baseUrl);
    this.#token = hubToken(settings.apiKey);
    this.#fetch = fetching;
  }

  /** Show this token from now on. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** Ask, and return the whole answer, whatever its status. Throws HubUnreachable. */
  async ask(method: string, path: string, asking: Asking): Promise<Reply> {
    const watch = new Watch(asking.timeoutMs, asking.signal);
    const request = watch.begin(this.#request(method, path, asking, 'application/json', watch.signal));
    try {
      const response = await this.#fetch(request);
      const text = await response.text();
      const body = text ? parsed(text) : undefined;
      if (text && body === undefined && response.ok) throw noHub();
      return { status: response.status, headers: response.headers, body };
    } catch (error) {
      throw this.#meaning(error, watch);
    } finally {
      watch.end();
    }
  }

  /** Ask for a stream, with at most `idleMs` between its bytes; to be closed. Throws HubUnreachable. */
  async stream(method: string, path: string, asking: Asking, idleMs: number): Promise<Events> {
    const watch = new Watch(asking.timeoutMs, asking.signal);
    const request = watch.begin(
      this.#request(method, path, asking, 'text/event-stream, application/json', watch.signal),
    );
    watch.heard(idleMs);
    try {
      return new Events(await this.#fetch(request), watch, idleMs, (error) => this.#meaning(error, watch));
    } catch (error) {
      const meaning = this.#meaning(error, watch);
      watch.end();
      throw meaning;
    }
  }

  #request(method: string, path: string, asking: Asking, accept: string, signal: AbortSignal): Request {
    const headers = new Headers({ accept, ...asking.headers });
    if (this.#token) headers.set('authorization', `Bearer ${this.#token}`);
    const init: RequestInit = { method, headers, signal, redirect: 'manual' };
    if (asking.body !== undefined) {
      headers.set('content-type', 'application/json');
      init.body = JSON.stringify(asking.body);
    }
    return new Request(this.url + path, init);
  }

  /** What it means that a request or a stream broke off. */
  #meaning(error: unknown, watch: Watch): unknown {
    if (watch.left) return watch.reason;
    if (error instanceof HubUnreachable) return error;
    if (watch.timedOut) return this.#unreachable('timeout', true, error);
    if (error instanceof RangeError) return this.#unreachable('too_large', true, error);
    const code = codeOf(error);
    const unsent = UNSENT[code];
    if (unsent) return this.#unreachable(unsent, false, error);
    if (code === 'UND_ERR_HEADERS_TIMEOUT') return this.#unreachable('slow', true, error);
    return this.#unreachable(/CERT|TLS|SSL/.test(code) ? 'tls' : 'reset', true, error);
  }

  #unreachable(reason: string, sent: boolean, cause: unknown): HubUnreachable {
    const nextStep = sent ? { nextStep: 'It may have been carried out: look before you repeat it.' } : {};
    const sentence = sent ? `${this.url} did not answer (${reason})` : `No hub answers at ${this.url} (${reason})`;
    return new HubUnreachable(sentence, { sent, reason, cause, ...nextStep });
  }
}

/** A stream that has begun: its status, its headers, then its events; or a plain answer in its place. */
export class Events implements AsyncIterable<SseEvent> {
  readonly #response: Response;
  readonly #watch: Watch;
  readonly #idleMs: number;
  readonly #meaning: (error: unknown) => unknown;
  readonly status: number;
  readonly headers: Headers;
  /** Whether events follow. */
  readonly isStream: boolean;

  constructor(response: Response, watch: Watch, idleMs: number, meaning: (error: unknown) => unknown) {
    this.#response = response;
    this.#watch = watch;
    this.#idleMs = idleMs;
    this.#meaning = meaning;
    this.status = response.status;
    this.headers = response.headers;
    this.isStream = response.ok && (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  }

  /** The JSON of an answer that is no stream. */
  async whole(): Promise<Json | undefined> {
    try {
      return parsed(await this.#response.text());
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  /** The events, until the connection ends. Throws HubUnreachable where it broke off. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SseEvent> {
    const parser = new SseParser(EVENT_CHARACTERS);
    const decoder = new TextDecoder();
    const reader = this.#response.body?.getReader();
    try {
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
        this.#watch.heard(this.#idleMs);
        yield* parser.feed(decoder.decode(read.value, { stream: true }));
      }
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  /** Close the connection. */
  close(): void {
    this.#watch.end();
  }
}

/** What the machine calls the error, wherever its runtime keeps that. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    if (/connection refused/i.test(at.message)) return 'ECONNREFUSED';
  }
  return '';
}
