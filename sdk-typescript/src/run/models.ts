/** What a model is to an agent: something that is asked with a `ModelRequest` and answers with a `ModelReply`. */
import type { Json, JsonObject } from '../json.js';

/** A tool that the model wants called. */
export interface ToolCall {
  /** The tool. */
  name: string;
  /** What it is given: an object, or whatever the model wrote. */
  arguments?: Json;
  /** By which its result is known. */
  id?: string;
}

/** One turn: what the user said, what the model answered, or what came of a tool call. */
export interface ModelMessage {
  /** Who said it. */
  role: 'user' | 'assistant' | 'tool';
  /** The words. */
  text: string;
  /** The tools that it wants called. */
  toolCalls?: readonly ToolCall[];
  /** Whose result it is. */
  toolCallId?: string;
}

/** A tool as the model sees it. */
export interface ToolSchema {
  /** What the model calls it. */
  name: string;
  /** What the model is told of it. */
  description: string;
  /** What it is given. */
  inputSchema: JsonObject;
}

/** What a model is asked. */
export interface ModelRequest {
  /** What the agent is for. */
  readonly instructions: string | undefined;
  /** The turns so far, the newest last. */
  readonly messages: readonly ModelMessage[];
  /** What it may have called. */
  readonly tools: readonly ToolSchema[];
  /** It must answer now, without tools. */
  readonly final: boolean;
  /** Ends it: the call that it works for was cancelled, or its time is over. */
  readonly signal: AbortSignal | undefined;
}

/** What was used up. */
export interface Usage {
  /** Tokens that were read. */
  inputTokens?: number | undefined;
  /** Tokens that were written. */
  outputTokens?: number | undefined;
  /** What it cost. */
  costUsd?: number | undefined;
}

/** What a model answers: text, tools that it wants called first, or both. */
export interface ModelReply {
  /** The words. */
  text?: string;
  /** The tools that it wants called. */
  toolCalls?: readonly ToolCall[];
  /** What was used up. */
  usage?: Usage;
  /** Which model it was. */
  model?: string;
}

/** Any async function from a request to a reply, or one that yields pieces of the text before its reply. */
export type Model = (request: ModelRequest) => Promise<ModelReply | string> | AsyncIterable<ModelReply | string>;

/** One round: what the model said, which tools it wanted, and what came of each. */
export interface Round {
  /** The words. */
  readonly text: string;
  /** The tools that it wants called. */
  readonly toolCalls: readonly ToolCall[];
  /** What came of each. */
  readonly results: readonly string[];
}

/** What a model came to. */
export class RunResult {
  constructor(
    /** The answer. */
    readonly content: string,
    /** The rounds that led to it. */
    readonly steps: readonly Round[],
    /** What they used up, in all. */
    readonly usage: Usage,
  ) {}
}

/** Ask any kind of model: pieces of its text, if it gives any, then exactly one reply. */
export async function* asked(model: Model, request: ModelRequest): AsyncGenerator<string, ModelReply> {
  const said = model(request);
  if (!(Symbol.asyncIterator in said)) {
    const answer = await said;
    const reply = typeof answer === 'string' ? { text: answer } : answer;
    if (reply.text) yield reply.text;
    return reply;
  }
  let text = '';
  for await (const piece of said) {
    if (typeof piece !== 'string') {
      if (piece.text && !text) yield piece.text;
      return { ...piece, text: piece.text || text };
    }
    text += piece;
    yield piece;
  }
  return { text };
}
