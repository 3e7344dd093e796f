/** What an agent publishes: functions as skills, a handler of free text as `chat`, its model as `handle`. */
import type { Message } from '../content.js';
import { BadRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { inputOfMessage, messageOfInput } from '../objects.js';
import type { Context } from '../work/context.js';
import { published, readInput, readOutput, type Schema } from './schema.js';

/** The names of what answers messages, and of what works on a task. */
export const CHAT = 'chat';
export const HANDLE = 'handle';
const MAX_NAME = 128;

// Nothing is required, so that files and lists of parts are taken as well as words.
const CHAT_INPUT: JsonObject = { type: 'object', properties: { text: { type: 'string' } } };
const HANDLE_INPUT: JsonObject = { type: 'object', properties: { task: { type: 'string' } }, required: ['task'] };

/** What carries out a call: a value, a promise of one, or an async iterator of the answer's pieces. */
export type Handler<Input> = (input: Input, ctx: Context) => unknown;

/** What is published of a skill. */
export interface SkillOptions<Input> {
  /** What it does, in a sentence. */
  description?: string;
  /** What it is given: JSON Schema, or a schema of a library with `~standard`. */
  input?: Schema<Input>;
  /** What it returns. */
  output?: Schema<unknown>;
  /** Words to find it by. */
  tags?: readonly string[];
  /** Running it twice does no harm. */
  idempotent?: boolean;
  /** How long it may take, whatever its caller allows. */
  timeoutS?: number;
}

/** A call, as far as a skill has to know it. */
export interface Given {
  readonly input: Json | undefined;
  readonly message: Message;
}

/** One thing that an agent can do. */
export interface Skill {
  /** What callers call it. */
  readonly name: string;
  /** How long it may take. */
  readonly timeoutS: number | undefined;
  /** The skill as a card shows it. */
  readonly shown: JsonObject;
  /** Have its function called. Throws InputRefused. */
  carryOut(given: Given, ctx: Context): Promise<unknown>;
  /** What it returned, as it is told. */
  finished(value: unknown): Promise<unknown>;
}

/** A function as a skill. */
export function makeSkill<Input>(name: string, options: SkillOptions<Input>, handler: Handler<Input>): Skill {
  const input = published(options.input, 'input');
  const read = async ({ input: given, message }: Given): Promise<Input> =>
    (await readInput(options.input, isObject(given) ? given : inputOfMessage(message, input))) as Input;
  return skill(name, options, input, read, handler);
}

/** A handler of free text as the skill `chat`. */
export function makeChat(handler: Handler<Message>): Skill {
  const described = { description: 'Answers messages' };
  return skill(CHAT, described, CHAT_INPUT, ({ message }) => Promise.resolve(message), handler);
}

/** Whatever works on a task in words as the skill `handle`. */
export function makeHandle(description: string, handler: Handler<string>): Skill {
  return skill(HANDLE, { description }, HANDLE_INPUT, (given) => Promise.resolve(taskOf(given)), handler);
}

function skill<Input>(
  name: string,
  options: Omit<SkillOptions<Input>, 'input'>,
  input: JsonObject | undefined,
  read: (given: Given) => Promise<Input>,
  handler: Handler<Input>,
): Skill {
  if (!name || name.length > MAX_NAME) throw new TypeError(`A skill's name is 1 to ${MAX_NAME} characters.`);
  const shown: JsonObject = {
    name,
    description: options.description || name,
    input_schema: input,
    output_schema: published(options.output, 'output'),
    tags: options.tags && [...options.tags],
    idempotent: options.idempotent || undefined,
  };
  return {
    name,
    timeoutS: options.timeoutS,
    shown,
    carryOut: async (given, ctx) => handler(await read(given), ctx),
    finished: async (value) => await readOutput(options.output, value),
  };
}

/** The task in words: the field of that name, else what the message says. */
function taskOf({ input, message }: Given): string {
  for (const value of [input, message.data]) {
    if (isObject(value) && typeof value['task'] === 'string') return value['task'];
  }
  const words = message.text || (input ? messageOfInput(input).text : '');
  if (words) return words;
  throw new BadRequest('task: required, a text', { details: { errors: [{ path: 'task', message: 'required' }] } });
}
