/** A hub that does as a test says: it keeps what an agent tells, and answers as it is told to. */
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { Agent } from '@agentplatform/sdk';
import { say, serving, sse, until, type Got } from './support.js';

/** What an agent told of a call, in one request. */
export interface Told {
  readonly callId: string;
  readonly session: string;
  readonly attempt: number;
  readonly events: { n: number; event: string; data: Record<string, unknown> }[];
}

type Answer = (reply: ServerResponse) => void;

export class ScriptedHub {
  url = '';
  /** What agents said to open a session, or to renew it. */
  readonly hellos: Record<string, unknown>[] = [];
  /** What they told. */
  readonly told: Told[] = [];
  /** Where their streams began: Last-Event-ID. */
  readonly streams: string[] = [];
  /** How the next requests are answered, in place of the usual way. */
  readonly answers: Answer[] = [];
  readonly streamAnswers: Answer[] = [];
  /** What a new session is told beside its id. */
  opening: Record<string, unknown> = {};
  left = 0;
  #sessions = 0;
  #frame = 0;
  #stream: ServerResponse | undefined;

  static async start(t: TestContext): Promise<ScriptedHub> {
    const hub = new ScriptedHub();
    hub.url = await serving(t, (got, reply) => hub.#answer(got, reply));
    return hub;
  }

  /** An agent that is connected to it until the test ends. */
  async agent(t: TestContext, skills: (agent: Agent) => void, concurrency = 10): Promise<Agent> {
    const agent = new Agent({ name: 'Scripted', hub: this.url, concurrency, log: () => undefined });
    skills(agent);
    await agent.connect();
    t.after(() => agent.stop());
    await until(() => this.#stream !== undefined, 'the agent listens');
    return agent;
  }

  /** Send a frame. */
  send(event: string, data: object, id = ++this.#frame): void {
    this.#stream?.write(sse(event, data, id));
  }

  /** Offer a call. */
  offer(callId: string, skill: string, more: object = {}): void {
    this.send('call', { call_id: callId, attempt: 1, skill, input: {}, options: {}, context: {}, ...more });
  }

  /** Break the stream off. */
  cut(): void {
    this.#stream?.destroy();
    this.#stream = undefined;
  }

  /** Wait for the next stream. */
  async listened(): Promise<void> {
    await until(() => this.#stream !== undefined, 'the agent listens again');
  }

  /** The events of a call in the order they were told, those of an attempt alone where one is named. */
  events(callId: string, attempt?: number): string[] {
    const requests = this.told.filter(
      (one) => one.callId === callId && (attempt === undefined || one.attempt === attempt),
    );
    return requests.flatMap(({ events }) => events.map(({ n, event }) => `${n} ${event}`));
  }

  /** Wait until that was told of a call. */
  async heard(callId: string, event: string, attempt?: number): Promise<void> {
    await until(() => this.events(callId, attempt).some((one) => one.endsWith(` ${event}`)), `${event} of ${callId}`);
  }

  #answer(got: Got, reply: ServerResponse): void {
    const { method, path, body, headers } = got;
    if (method === 'DELETE') {
      this.left += 1;
      say(reply, {});
    } else if (method === 'GET') {
      this.streams.push(String(headers['last-event-id'] ?? ''));
      const answer = this.streamAnswers.shift();
      if (answer) return answer(reply);
      reply.writeHead(200, { 'content-type': 'text/event-stream' }).write(sse('hello', {}));
      this.#stream = reply;
    } else if (path === '/v1/agents/connect') {
      this.hellos.push(body);
      const opening = 'session_id' in body ? {} : this.opening;
      const session_id = body['session_id'] ?? `ses_${++this.#sessions}`;
      say(reply, { session_id, heartbeat_s: 0.1, token: 'agent-token', keep: [], drop: [], ...opening });
    } else {
      const callId = decodeURIComponent(path.split('/')[4] ?? '');
      const { session_id, attempt, events } = body as { session_id: string; attempt: number; events: Told['events'] };
      const told = { callId, session: session_id, attempt, events };
      this.told.push(told);
      const usual: Answer = (to) => say(to, { acked: events.at(-1)?.n });
      (this.answers.shift() ?? usual)(reply);
    }
  }
}

/** The refusal of a session that is over. */
export function sessionOver(reply: ServerResponse): void {
  say(reply, { error: { code: 'SESSION_OVER', message: 'open a new one' } }, 404);
}
