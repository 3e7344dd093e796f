/** An agent: what it is called, what it can do, and the ways to run it. Making one opens nothing. */
import type { Message } from '../content.js';
import { Connected } from '../connect/connected.js';
import type { JsonObject } from '../json.js';
import { Memory } from '../run/memory.js';
import type { Model, RunResult } from '../run/models.js';
import { handle, run } from '../run/run.js';
import type { Context } from '../work/context.js';
import { toConsole, type Log } from '../work/log.js';
import {
  CHAT,
  HANDLE,
  makeChat,
  makeHandle,
  makeSkill,
  type Handler,
  type Skill,
  type SkillOptions,
} from './skills.js';
import type { Tool } from './tools.js';

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** How an agent is made. */
export interface AgentOptions {
  /** What it is called. */
  name: string;
  /** What its model is told. */
  instructions?: string;
  /** Functions that its model may have called; they are not published. */
  tools?: readonly Tool<never>[];
  /** What works on tasks: any async function from a request to a reply. */
  model?: Model;
  /** Its id; else made of the name, so that it is the same after a restart. */
  id?: string;
  /** What it is, for others. */
  description?: string;
  /** Its version. */
  version?: string;
  /** The hub's address; else DRAGOMAN_URL, else http://127.0.0.1:8700. */
  hub?: string;
  /** The token it is shown; else DRAGOMAN_TOKEN. */
  apiKey?: string;
  /** How many calls it takes at once: 10. */
  concurrency?: number;
  /** How often its model may be asked for one task: 8. */
  maxSteps?: number;
  /** Laid over the card that is made: tags, provider, rate_limits and the like. */
  card?: JsonObject;
  /** Where its log goes; else warnings and errors to the console. */
  log?: Log;
}

/** An agent, made of functions, of a model, or of both. */
export class Agent {
  /** What it is called. */
  readonly name: string;
  /** What its model is told. */
  readonly instructions: string | undefined;
  /** Its id. */
  readonly id: string;
  /** What it is, for others. */
  readonly description: string | undefined;
  /** Its version. */
  readonly version: string;
  /** Functions that its model may have called. */
  readonly tools: readonly Tool<never>[];
  /** What works on tasks. */
  readonly model: Model | undefined;
  /** How often its model may be asked for one task. */
  readonly maxSteps: number;
  /** How many calls it takes at once. */
  readonly concurrency: number;
  readonly #options: AgentOptions;
  readonly #skills = new Map<string, Skill>();
  readonly #memory = new Memory();
  #chat: Skill | undefined;
  #connected: Connected | undefined;

  constructor(options: AgentOptions) {
    const { name, concurrency = 10 } = options;
    if (!name.trim()) throw new TypeError('An agent needs a name.');
    if (!(concurrency >= 1)) throw new TypeError(`concurrency is at least 1; this is ${concurrency}.`);
    this.#options = options;
    this.name = name;
    this.instructions = options.instructions;
    this.id = checkedId(options.id ?? idOfName(name));
    this.description = options.description;
    this.version = options.version ?? '1.0.0';
    this.tools = options.tools ?? [];
    this.model = options.model;
    this.maxSteps = options.maxSteps ?? 8;
    this.concurrency = concurrency;
  }

  /** A subclass's own way with tasks; published as the skill `handle`. */
  handleTask?(task: string, ctx: Context): unknown;

  /** Publish a function. Throws TypeError for a name that is taken. */
  skill<Input extends object = JsonObject>(name: string, options: SkillOptions<Input>, handler: Handler<Input>): this {
    if (this.skills.has(name)) throw new TypeError(`${this.name} has a skill ${name} already.`);
    this.#skills.set(name, makeSkill(name, options, handler));
    return this;
  }

  /** Let a function answer messages that name no skill; it is published as the skill `chat`. */
  onMessage(handler: (message: Message, ctx: Context) => unknown): this {
    if (this.#chat || this.#skills.has(CHAT)) throw new TypeError(`${this.name} has a handler of messages already.`);
    this.#chat = makeChat(handler);
    return this;
  }

  /** Everything that is published, by name: `chat` and `handle` too, where there is something behind them. */
  get skills(): ReadonlyMap<string, Skill> {
    const found = new Map<string, Skill>(this.#chat ? [[CHAT, this.#chat]] : []);
    for (const [name, skill] of this.#skills) found.set(name, skill);
    const working = this.#handle();
    if (working && !found.has(HANDLE)) found.set(HANDLE, working);
    return found;
  }

  /** What a message that names no skill goes to, where the agent has something for such. */
  get defaultSkill(): string | undefined {
    return this.#chat ? CHAT : this.#handle() && HANDLE;
  }

  /** Its card, as the platform's dialect has it. */
  card(): JsonObject {
    const card: JsonObject = {
      id: this.id,
      name: this.name,
      description: this.description ?? this.instructions ?? this.name,
      version: this.version,
      capabilities: { streaming: true, a2a: true, memory: this.model !== undefined },
      skills: [...this.skills.values()].map((skill) => skill.shown),
      authentication: { type: 'bearer', scopes_required: ['a2a:call'] },
      default_skill: this.defaultSkill,
      ...this.#options.card,
    };
    return JSON.parse(JSON.stringify(card)) as JsonObject;
  }

  /** Let the model work on a task. Throws NoModel. */
  async run(task: string, options: { conversationId?: string } = {}): Promise<RunResult> {
    return await run(this, this.#memory, task, options.conversationId);
  }

  /**
   * Connect to the hub and work until SIGINT, SIGTERM or `stop`; then finish what runs.
   *
   * Waits for a hub that is away. Throws the error of one that refuses: the token, the id, or the card.
   */
  async start(): Promise<void> {
    await this.#begin().untilStopped();
  }

  /** Connect to the hub, and work until `stop`; returns when the hub has taken the agent. */
  async connect(): Promise<void> {
    await this.#begin().opened();
  }

  /** Take no new calls, let the running ones end within 30 s, and leave the hub. Throws what ended it before. */
  async stop(): Promise<void> {
    await this.#connected?.stop();
  }

  #begin(): Connected {
    if (this.#connected && !this.#connected.over)
      throw new TypeError(`${this.id} is connected already: stop it first.`);
    const { hub, apiKey, log = toConsole } = this.#options;
    this.#connected = new Connected(this, { baseUrl: hub, apiKey }, log);
    return this.#connected;
  }

  /** `handleTask` of a subclass, else the model. */
  #handle(): Skill | undefined {
    const told = this.description ?? this.instructions ?? `Works on a task for ${this.name}`;
    if (this.handleTask) return makeHandle(told, (task, ctx) => this.handleTask?.(task, ctx));
    return this.model && makeHandle(told, (task, ctx) => handle(this, this.#memory, task, ctx));
  }
}

/** An agent id made from a name: `Research Assistant` is `agt_research_assistant`. */
function idOfName(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return `agt_${slug.slice(0, 100) || 'agent'}`;
}

function checkedId(id: string): string {
  if (ID.test(id)) return id;
  throw new TypeError(`An agent's id is letters, digits, . _ and -, at most 128; this is ${id}.`);
}
