/**
 * Letting an agent's model work on a task: rounds of asking it and calling the tools that it wants, until it answers.
 *
 * Usage is summed, and noted with the call that is being carried out. Inside a handler the conversation is that of its
 * caller alone.
 */
import type { Agent } from '../agent/agent.js';
import type { Tool } from '../agent/tools.js';
import { AgentError, NoModel } from '../errors.js';
import { isObject } from '../json.js';
import { currentScope } from '../scope.js';
import type { Context } from '../work/context.js';
import { Memory, newest } from './memory.js';
import {
  asked,
  RunResult,
  type ModelMessage,
  type ModelReply,
  type Round,
  type ToolCall,
  type ToolSchema,
  type Usage,
} from './models.js';

const MOST_CALLS = 128; // in one round
const MOST_CHARACTERS = 256 * 1024; // of one result

/** Let the model work on a task. Throws NoModel. */
export async function run(agent: Agent, memory: Memory, task: string, conversationId?: string): Promise<RunResult> {
  const work = worked(agent, memory, task, conversationId);
  for (;;) {
    const { done, value } = await work.next();
    if (done) return value;
  }
}

/** Work on a task for a caller, who hears the answer as the model says it. */
export async function handle(agent: Agent, memory: Memory, task: string, ctx: Context): Promise<RunResult> {
  const work = worked(agent, memory, task);
  let held = '';
  for (;;) {
    const { done, value } = await work.next();
    if (done) return value;
    // One piece behind: an answer in one piece is told once, at the end.
    await ctx.stream(held);
    held = value;
  }
}

/** Pieces of text as they come, and the result at the end. */
async function* worked(
  agent: Agent,
  memory: Memory,
  task: string,
  conversationId?: string,
): AsyncGenerator<string, RunResult> {
  const { model, instructions, maxSteps } = agent;
  if (!model) throw new NoModel(`agent "${agent.name}" has no model; pass model: … or define a skill`);
  const tools = new Map(agent.tools.map((tool) => [tool.name, tool as Tool]));
  const schemas = await Promise.all([...tools.values()].map(schemaOf));
  const scope = currentScope();
  const name = conversation(scope?.context, conversationId);
  const question: ModelMessage = { role: 'user', text: task };
  const earlier = name === undefined ? [] : memory.turns(name);
  const messages = [...(earlier.length ? earlier : history(scope?.context, conversationId)), question];
  const steps: Round[] = [];
  let usage: Usage = {};
  for (let count = 1; count <= maxSteps; count++) {
    const final = count === maxSteps;
    const request = { instructions, messages: [...messages], tools: schemas, final, signal: scope?.signal };
    const reply = yield* asked(model, request);
    if (reply.usage) scope?.context?.usage({ ...reply.usage, model: reply.model });
    usage = sum(usage, reply.usage);
    const text = reply.text ?? '';
    const calls = numbered(reply, count);
    if (!calls.length) {
      steps.push({ text, toolCalls: [], results: [] });
      if (name !== undefined) memory.add(name, question, { role: 'assistant', text });
      return new RunResult(text, steps, usage);
    }
    if (final) break;
    const results = await Promise.all(calls.map((call, place) => called(tools, call, place)));
    steps.push({ text, toolCalls: calls, results });
    messages.push({ role: 'assistant', text, toolCalls: calls });
    calls.forEach(({ id = '' }, place) => messages.push({ role: 'tool', text: results[place] ?? '', toolCallId: id }));
  }
  throw new AgentError(
    `The model of agent "${agent.name}" came to no answer within ${maxSteps} steps: maxSteps allows more.`,
    { details: { reason: 'max_steps' } },
  );
}

async function schemaOf(tool: Tool): Promise<ToolSchema> {
  return { name: tool.name, description: tool.description, inputSchema: await tool.inputSchema() };
}

/** What came of a tool call, or its mishap, as text for the model: it may do better then. */
async function called(tools: ReadonlyMap<string, Tool>, call: ToolCall, place: number): Promise<string> {
  const tool = tools.get(call.name);
  const given = call.arguments ?? {};
  if (place >= MOST_CALLS) return `Not called: a round has at most ${MOST_CALLS} calls.`;
  if (!tool) return `There is no tool ${call.name}. There are: ${[...tools.keys()].join(', ') || 'none'}.`;
  if (!isObject(given)) return `The arguments of ${call.name} are no JSON object.`;
  try {
    const value = await tool(given);
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
    return text.length <= MOST_CHARACTERS ? text : `${text.slice(0, MOST_CHARACTERS)}… (cut)`;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}

/** Whose conversation it is: inside a handler that of its caller, and of nobody whom nobody knows. */
function conversation(context: Context | undefined, given: string | undefined): string | undefined {
  if (!context) return given === undefined ? undefined : JSON.stringify(['', given]);
  if (context.caller.kind === 'anonymous') return undefined;
  return JSON.stringify([context.caller.id, given ?? context.conversationId]);
}

/** The turns that the hub remembers, of the conversation that the running handler's call belongs to. */
function history(context: Context | undefined, given: string | undefined): readonly ModelMessage[] {
  if (!context || (given !== undefined && given !== context.conversationId)) return [];
  const turns = context.history.map(({ role, text, data }): ModelMessage => {
    const words = text || (data === undefined ? '' : JSON.stringify(data));
    return { role: role === 'user' ? 'user' : 'assistant', text: words };
  });
  return newest(turns);
}

function numbered(reply: ModelReply, count: number): ToolCall[] {
  return (reply.toolCalls ?? []).map((call, place) => ({ ...call, id: call.id || `call_${count}_${place + 1}` }));
}

function sum(before: Usage, more: Usage = {}): Usage {
  const added = (name: keyof Usage): Usage => {
    const both = [before[name], more[name]].filter((each) => each !== undefined);
    return both.length ? { [name]: both.reduce((one, two) => one + two) } : {};
  };
  return { ...added('inputTokens'), ...added('outputTokens'), ...added('costUsd') };
}
