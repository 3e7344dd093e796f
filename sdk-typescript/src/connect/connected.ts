/** An agent while it is connected: from its first try to reach the hub until it has left. */
import type { Agent } from '../agent/agent.js';
import { A2AClient } from '../client/client.js';
import { HubHttp } from '../client/http.js';
import type { Settings } from '../client/settings.js';
import type { Log } from '../work/log.js';
import { Connection } from './connection.js';
import { Link } from './link.js';
import { stoppingBy } from './signals.js';

/** An agent that is connected, or tries to be. */
export class Connected {
  readonly #agent: Agent;
  readonly #log: Log;
  /** Whether it works no more. */
  over = false;
  readonly #url: string;
  readonly #connection: Connection;
  readonly #running: Promise<void>;

  constructor(agent: Agent, settings: Settings, log: Log) {
    this.#agent = agent;
    this.#log = log;
    const http = new HubHttp(settings);
    const acting = new HubHttp(settings);
    this.#url = http.url;
    this.#connection = new Connection(agent, new Link(http, acting), A2AClient.over(acting), log);
    this.#running = this.#connection.run().finally(() => (this.over = true));
    // Whoever waits for it is told; perhaps nobody does.
    this.#running.catch(() => undefined);
  }

  /** Wait until the hub has taken the agent. Throws what ended it before. */
  async opened(): Promise<void> {
    await Promise.race([this.#connection.opened.wait(), this.#running]);
    this.#running.catch((error: unknown) => this.#log('error', 'The agent is no longer connected.', { error }));
  }

  /** Work until a signal or `stop`; throws what ended it before. */
  async untilStopped(): Promise<void> {
    const undo = stoppingBy(() => this.#connection.stop());
    try {
      await Promise.race([this.#connection.opened.wait(), this.#running]);
      if (!this.over) this.#log('info', `${this.#agent.id} is connected to ${this.#url}`, {});
      await this.#running;
    } finally {
      undo();
    }
    // Handlers that do not stop would keep the process for ever.
    if (this.#connection.stuck && typeof process !== 'undefined') process.exit(0);
  }

  /** Take no new calls, finish what runs, leave. Throws what ended it before. */
  async stop(): Promise<void> {
    this.#connection.stop();
    await this.#running;
  }
}
