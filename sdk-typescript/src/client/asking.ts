/**
 * A call as it is put to the hub: the body, the headers, and the time there is for it.
 *
 * What the running handler passes on by itself is added here: the trace, the conversation, the call that this one is
 * made for, and what is left of that one's time.
 */
import { messageOf, type Said } from '../content.js';
import { AgentTimeout } from '../errors.js';
import { written, type JsonObject } from '../json.js';
import { bodyOfMessage } from '../objects.js';
import type { Scope } from '../scope.js';
import { now } from '../waiting.js';

/** How long a call may take, a stream, and a call that nobody waits for. */
export const CALL_MS = 30_000;
export const STREAM_MS = 3_600_000;
export const ACCEPTED_MS = 86_400_000;
const MARGIN_MS = 50; // what a handler keeps to answer with, when a call that it makes runs out of time

/** What a caller wants. */
export interface CallOptions {
  /** The agent; without it the hub picks the best one that has the skill. */
  target?: string | undefined;
  /** The skill; an agent that is spoken to may be left to choose it. */
  skill?: string | undefined;
  /** What the skill is given. */
  input?: object | undefined;
  /** What is said to the agent, in place of an input. */
  message?: Said | undefined;
  /** How long everything may take: 30,000 for a call, an hour for a stream, a day for a submitted call. */
  timeoutMs?: number | undefined;
  /** Who goes first where calls wait. */
  priority?: 'low' | 'normal' | 'high' | 'urgent' | undefined;
  /** The conversation it belongs to; inside a handler that of its call. */
  conversationId?: string | undefined;
  /** What is said beside the input; not passed on by the target. */
  metadata?: object | undefined;
  /** The same key with the same input never runs twice within 24 hours. */
  idempotencyKey?: string | undefined;
  /** `at_most_once`: never sent to the agent a second time, whatever happens in between. */
  delivery?: 'at_least_once' | 'at_most_once' | undefined;
  /** Ends the waiting; the call itself goes on. */
  signal?: AbortSignal | undefined;
}

/** One logical call: the same words on every try. */
export interface Asked {
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Even where an earlier try may have arrived. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

/** How a call is asked for. */
export interface Asks {
  readonly scope: Scope | undefined;
  readonly mostMs: number;
  /** A call that nobody waits for may go on when the handler that made it is done. */
  readonly waited?: boolean;
  /** The call that this one goes on with. */
  readonly continues?: string;
}

/** The request for a call. Throws AgentTimeout where the handler that makes it has no time left for it. */
export function askFor(call: CallOptions, asks: Asks): Asked {
  const { scope, mostMs, waited = true } = asks;
  const timeoutMs = waited ? timeFor(call, scope, mostMs) : call.timeoutMs;
  const { target, skill, priority, delivery } = call;
  const context = {
    conversation_id: call.conversationId ?? scope?.conversationId,
    parent_execution_id: scope?.callId,
    continue_call_id: asks.continues,
    metadata: call.metadata as JsonObject | undefined,
  };
  const options = { timeout_ms: timeoutMs, priority, delivery };
  return {
    body: { target_agent_id: target, skill, ...content(call), options, context },
    headers: headersOf(call, scope),
    timeoutMs: timeoutMs ?? mostMs,
    repeatable: delivery !== 'at_most_once' || call.idempotencyKey !== undefined,
    signal: call.signal ?? (waited ? scope?.signal : undefined),
  };
}

/** An id that nobody else has. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return prefix + hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-a$4-$5');
}

function content(call: CallOptions): JsonObject {
  if (call.message === undefined) return { input: (call.input ?? {}) as JsonObject };
  if (call.input !== undefined) throw new TypeError('a call has an input or a message, not both');
  return bodyOfMessage(messageOf(call.message));
}

function headersOf(call: CallOptions, scope: Scope | undefined): Record<string, string> {
  return written({
    'x-request-id': newId('req_'),
    'idempotency-key': call.idempotencyKey,
    traceparent: scope?.traceparent,
    'x-trace-id': scope?.traceId,
    'x-span-id': scope?.spanId,
  });
}

function timeFor(call: CallOptions, scope: Scope | undefined, mostMs: number): number {
  const wanted = call.timeoutMs ?? mostMs;
  if (scope?.deadline === undefined) return wanted;
  const left = Math.floor(scope.deadline - now() - MARGIN_MS);
  if (left > 0) return Math.min(wanted, left);
  throw new AgentTimeout('No time is left for this call', {
    details: { reason: 'no_time_left' },
    nextStep: 'The handler that makes it has reached its own deadline; nothing was sent.',
    traceId: scope.traceId ?? '',
  });
}
