/**
 * The hub's errors, and the SDK's own.
 *
 *     DragomanError
 *     ├─ BadRequest › InputRefused TooLarge
 *     ├─ NotAuthenticated › BadSignature      ├─ NotAuthorized
 *     ├─ NotFound › AgentNotFound SkillNotFound TaskNotFound
 *     ├─ Conflict › IdempotencyConflict CallLoop
 *     ├─ RateLimited   ├─ Overloaded   ├─ AgentUnavailable › CircuitOpen
 *     ├─ AgentTimeout  ├─ AgentError › Interrupted
 *     └─ of the SDK: HubUnreachable InputRequired CallCancelled NoModel
 */
import type { CallHandle } from './client/handles.js';
import { textsOf, type JsonObject } from './json.js';

/** What may be said of an error beside its sentence. */
export interface ErrorFacts {
  /** What else is known, as JSON. */
  details?: JsonObject;
  /** What may be done about it. */
  nextStep?: string;
  /** Whether the same request may be sent again. */
  retryable?: boolean;
  /** Seconds to wait before that. */
  retryAfterS?: number;
  /** The call it was about. */
  callId?: string;
  /** The trace of that call. */
  traceId?: string;
  /** The error that led to this one. */
  cause?: unknown;
}

/** Anything that goes wrong between a caller, the hub and an agent. */
export class DragomanError extends Error {
  /** @internal */
  static readonly code: string = 'INTERNAL_ERROR';
  /** @internal */
  static readonly retry: boolean = true;
  /** @internal */
  static readonly next: string = '';

  /** The hub's name for it. */
  readonly code: string;
  /** What happened, in one sentence; `message` has the next step too. */
  readonly sentence: string;
  /** What may be done about it; empty where nothing can. */
  readonly nextStep: string;
  /** What else is known. */
  readonly details: JsonObject;
  /** Whether the same request may be sent again. */
  readonly retryable: boolean;
  /** Seconds to wait before that, where it is known. */
  readonly retryAfterS: number | undefined;
  /** The call it was about, where there was one. */
  callId: string | undefined;
  /** The trace of that call. */
  traceId: string | undefined;

  /** Say what happened; without words, what its code says. */
  constructor(sentence?: string, facts: ErrorFacts = {}) {
    const kind = new.target;
    const said = sentence || named(kind.code);
    const nextStep = facts.nextStep ?? kind.next;
    super(joined(said, nextStep), { cause: facts.cause });
    this.name = kind.name;
    this.code = kind.code;
    this.sentence = said;
    this.nextStep = nextStep;
    this.details = facts.details ?? {};
    this.retryable = facts.retryable ?? kind.retry;
    this.retryAfterS = facts.retryAfterS;
    this.callId = facts.callId;
    this.traceId = facts.traceId;
  }
}

/** The request makes no sense as it is. */
export class BadRequest extends DragomanError {
  static override readonly code: string = 'VALIDATION_ERROR';
  static override readonly retry = false;
}

/** The input does not fit the skill's schema; `details.errors` has each failing path. */
export class InputRefused extends BadRequest {}

/** The body is larger than the hub takes. */
export class TooLarge extends BadRequest {
  static override readonly code = 'TOO_LARGE';
}

/** There was no token, or a wrong one. */
export class NotAuthenticated extends DragomanError {
  static override readonly code = 'AUTHORIZATION_ERROR';
  static override readonly retry = false;
}

/** A signature is missing, wrong, or too old. */
export class BadSignature extends NotAuthenticated {}

/** The token may not do that. */
export class NotAuthorized extends DragomanError {
  static override readonly code = 'AUTHORIZATION_ERROR';
  static override readonly retry = false;
}

/** There is no such thing. */
export class NotFound extends DragomanError {
  static override readonly code: string = 'NOT_FOUND';
  static override readonly retry = false;
}

/** There is no such agent. */
export class AgentNotFound extends NotFound {
  static override readonly code = 'AGENT_NOT_FOUND';
}

/** The agent has no such skill. */
export class SkillNotFound extends NotFound {
  static override readonly code = 'SKILL_NOT_FOUND';
}

/** There is no such call, or it is another's. */
export class TaskNotFound extends NotFound {
  static override readonly code = 'TASK_NOT_FOUND';
}

/** That contradicts what is there, such as a cancel of what has ended. */
export class Conflict extends DragomanError {
  static override readonly code: string = 'CONFLICT';
  static override readonly retry = false;
}

/** The idempotency key was used with another body. */
export class IdempotencyConflict extends Conflict {
  static override readonly code = 'IDEMPOTENCY_CONFLICT';
}

/** The call would come back to an agent that waits for it. */
export class CallLoop extends Conflict {
  static override readonly code = 'CALL_LOOP';

  /** The agents that wait for each other, first caller first. */
  get chain(): string[] {
    return textsOf(this.details, 'chain');
  }
}

/** Too many requests; `retryAfterS` says when to come back. */
export class RateLimited extends DragomanError {
  static override readonly code = 'RATE_LIMITED';
}

/** The hub takes no new calls at the moment. */
export class Overloaded extends DragomanError {
  static override readonly code = 'OVERLOADED';
}

/** The agent is offline or paused. */
export class AgentUnavailable extends DragomanError {
  static override readonly code: string = 'AGENT_UNAVAILABLE';
}

/** The agent failed repeatedly and is left alone for a while. */
export class CircuitOpen extends AgentUnavailable {
  static override readonly code = 'CIRCUIT_OPEN';
}

/** The agent did not answer in time. */
export class AgentTimeout extends DragomanError {
  static override readonly code = 'AGENT_TIMEOUT';
}

/** The agent failed; `retryable` as it said. */
export class AgentError extends DragomanError {
  static override readonly code: string = 'AGENT_ERROR';
  static override readonly retry = false;
}

/** The call was interrupted, and may not be repeated. */
export class Interrupted extends AgentError {
  static override readonly code = 'INTERRUPTED';
}

/** No hub answers. */
export class HubUnreachable extends DragomanError {
  static override readonly code = 'HUB_UNREACHABLE';
  static override readonly next = 'Start one with `dragoman dev`, or set DRAGOMAN_URL.';

  /** Whether the request may have arrived. */
  readonly sent: boolean;
  /** Why: refused, unresolved, timeout, slow, reset, tls, protocol, or http_ and a status. */
  readonly reason: string;

  constructor(sentence?: string, facts: ErrorFacts & { sent?: boolean; reason?: string } = {}) {
    super(sentence, facts);
    this.sent = facts.sent ?? false;
    this.reason = facts.reason ?? '';
  }
}

/** The agent asked something; `handle.send(answer)` goes on. */
export class InputRequired extends DragomanError {
  static override readonly code = 'INPUT_REQUIRED';
  static override readonly retry = false;
  static override readonly next = 'Go on with `await error.handle.send(answer)`.';
  #handle: CallHandle | undefined;

  /** What the agent asked. */
  get question(): string {
    return this.sentence;
  }

  /** The call that waits for the answer. */
  get handle(): CallHandle {
    if (!this.#handle) throw new TypeError('only what a call raised has a handle');
    return this.#handle;
  }

  /** @internal */
  set handle(handle: CallHandle) {
    this.#handle = handle;
  }
}

/** The call was cancelled. */
export class CallCancelled extends DragomanError {
  static override readonly code = 'CALL_CANCELLED';
  static override readonly retry = false;
  static override readonly next = 'Call again if the answer is still wanted.';
}

/** The agent has no model to let work. */
export class NoModel extends DragomanError {
  static override readonly code = 'NO_MODEL';
  static override readonly retry = false;
}

function joined(sentence: string, nextStep: string): string {
  const told = sentence.trim();
  return nextStep ? `${/[.!?…]$/.test(told) ? told : `${told}.`} ${nextStep}` : told;
}

/** `AGENT_NOT_FOUND` in words. */
function named(code: string): string {
  return code.charAt(0) + code.slice(1).toLowerCase().replaceAll('_', ' ');
}
