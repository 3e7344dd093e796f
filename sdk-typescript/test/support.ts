/** What the tests share: the hub of this run, agents that end with their test, a server that says what it is told. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { A2AClient, Agent, type AgentOptions } from '@agentplatform/sdk';

let count = 0;

/** An id that no other test has. */
export function fresh(prefix = 'agt_ts'): string {
  return `${prefix}_${process.pid}_${++count}`;
}

/** A client of the hub of this run. */
export function client(): A2AClient {
  return new A2AClient();
}

/** An agent whose skills are made by `skills`, connected until the test ends. */
export async function connected(
  t: TestContext,
  skills: (agent: Agent) => void,
  options: Partial<AgentOptions> = {},
): Promise<Agent> {
  const agent = new Agent({ name: 'Test', id: fresh(), ...options });
  skills(agent);
  await agent.connect();
  t.after(() => agent.stop());
  return agent;
}

/** Something that is told once, and may be waited for. */
export class Gate {
  readonly opened: Promise<void>;
  open!: () => void;

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}

/** Wait until it holds; throws after half a minute. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const end = Date.now() + 30_000; !(await holds());) {
    if (Date.now() > end) throw new Error(`it never held: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A request that the server got. */
export interface Got {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

/** A server in place of a hub; its URL. `answer` is asked for each request, and may keep the answer open. */
export async function serving(t: TestContext, answer: (got: Got, reply: ServerResponse) => void): Promise<string> {
  const server = createServer((request, reply) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString();
      const body = (text ? JSON.parse(text) : {}) as Record<string, unknown>;
      answer({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body }, reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Answer with JSON. */
export function say(reply: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}): void {
  reply.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** An event of a stream, as text. */
export function sse(event: string, data: unknown, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
