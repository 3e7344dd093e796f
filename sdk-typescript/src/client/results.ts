/** What a caller gets: the result of a call, the events of a stream, how a call stands, an agent that was found. */
import { Artifact, Data, textsIn } from '../content.js';
import { CallCancelled } from '../errors.js';
import { camelCased, isObject, objectOf, textOf, type Json, type JsonObject } from '../json.js';
import { partsOfResult } from '../objects.js';
import { errorOfReply } from '../refusals.js';
import type { Reply } from './http.js';

/** The result of a call, and what else is known of it. */
export class CallResult {
  /** The call's id. */
  readonly id: string;
  /** What it was used up. */
  readonly usage: JsonObject;
  /** When it was accepted, begun and ended. */
  readonly timing: JsonObject;
  /** The trace it belongs to. */
  readonly trace: JsonObject;

  constructor(
    /** The result itself. */
    readonly result: JsonObject,
    answer: JsonObject,
  ) {
    this.id = idOf(answer) ?? '';
    this.usage = objectOf(answer, 'usage');
    this.timing = objectOf(answer, 'timing');
    this.trace = objectOf(answer, 'trace');
  }

  /** Its words: those of its text parts, or its one value where that is text; else nothing. */
  get text(): string {
    const [only, ...more] = Object.values(this.result);
    return typeof only === 'string' && !more.length ? only : textsIn(partsOfResult(this.result)).join('');
  }

  /** Its value: what the skill returned where that was a list, a number or the like; else the result itself. */
  get data(): Json | undefined {
    return partsOfResult(this.result).find((part) => part instanceof Data)?.value;
  }

  /** What the agent made, in parts: files as files, text as text. */
  get artifacts(): Artifact[] {
    const parts = partsOfResult(this.result);
    return parts.length ? [new Artifact('result', parts)] : [];
  }
}

/** What all events of a stream have. */
export interface EventPlace {
  /** The call. */
  readonly callId: string;
  /** The event's number in the call. */
  readonly seq: number;
}

/** One thing that happened in a call. */
export type StreamEvent =
  | (EventPlace & { readonly type: 'start' })
  | (EventPlace & {
      readonly type: 'progress';
      /** From 0 to 1. */
      readonly progress: number | undefined;
      /** What the agent says. */
      readonly message: string | undefined;
    })
  | (EventPlace & {
      readonly type: 'chunk';
      /** A piece of text. */
      readonly content: string;
    })
  | (EventPlace & {
      readonly type: 'complete';
      /** The result. */
      readonly result: JsonObject;
      /** The result, and what else is known of the call. */
      readonly full: CallResult;
    });

/** How a call stands. */
export interface CallStatus {
  /** The call. */
  readonly callId: string;
  /** queued, running, completed, failed or cancelled. */
  readonly status: string;
  /** Whether nothing more will happen. */
  readonly ended: boolean;
  /** How far it is, from 0 to 1. */
  readonly progress?: number;
  /** What its agent says. */
  readonly message?: string;
  /** `input` or `auth`, where the agent asked for it. */
  readonly awaiting?: string;
  /** When it was accepted, begun and ended. */
  readonly timing: JsonObject;
  /** What it used up. */
  readonly usage: JsonObject;
  /** The trace it belongs to. */
  readonly trace: JsonObject;
}

/** An agent as a search shows it. */
export interface FoundAgent {
  /** Its id. */
  readonly id: string;
  /** What it is called. */
  readonly name: string;
  /** What it can do. */
  readonly skills: readonly string[];
  /** How good its callers find it, from 1 to 5. */
  readonly rating: number;
  /** In what time nineteen calls of twenty are answered. */
  readonly responseTimeP95Ms: number;
  /** How often it is there, from 0 to 1. */
  readonly availability: number;
  /** What it speaks. */
  readonly dialect: string;
  /** How it is, such as `active`. */
  readonly status: string;
}

/** The result of an ended call. Throws what it failed with. */
export function resultOfReply({ status, headers, body }: Reply): CallResult {
  if (status < 300 && isObject(body)) {
    if (body['status'] === 'completed') return completed(body['result'], body);
    if (body['status'] === 'cancelled') throw cancelled(body);
  }
  throw errorOfReply(status, headers, body);
}

/** A result, with what is known of its call. */
export function completed(result: Json | undefined, answer: JsonObject): CallResult {
  if (result === undefined || result === null) return new CallResult({}, answer);
  if (isObject(result)) return new CallResult(result, answer);
  return new CallResult(Array.isArray(result) ? { results: result } : { value: result }, answer);
}

/** The end of a call that was cancelled. */
export function cancelled(answer: JsonObject): CallCancelled {
  const error = new CallCancelled();
  error.callId = idOf(answer);
  error.traceId = textOf(objectOf(answer, 'trace'), 'trace_id');
  return error;
}

/** How a call stands, by the answer to a poll. */
export function statusOf(answer: JsonObject): CallStatus {
  const status = textOf(answer, 'status') ?? '';
  const ended = ['completed', 'failed', 'cancelled'].includes(status);
  return { timing: {}, usage: {}, trace: {}, ...camelCased(answer), callId: idOf(answer) ?? '', status, ended };
}

/** An agent, by the answer to a search. */
export function foundOf(agent: JsonObject): FoundAgent {
  return camelCased(agent) as unknown as FoundAgent;
}

function idOf(answer: JsonObject): string | undefined {
  return textOf(answer, 'call_id') ?? textOf(answer, 'id');
}
