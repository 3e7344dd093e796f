/** What the hub refuses, or an agent failed with, as errors of the one tree. */
import * as errors from './errors.js';
import { isObject, objectOf, textOf, textsOf, type Json, type JsonObject } from './json.js';

type Kind = new (sentence?: string, facts?: errors.ErrorFacts) => errors.DragomanError;

const LONGEST_WAIT_S = 3600;

// What the platform's words mean. Where its code says less than ours, the reason or the status does.
const BY_CODE: Readonly<Record<string, Kind>> = {
  VALIDATION_ERROR: errors.InputRefused,
  AUTHORIZATION_ERROR: errors.NotAuthorized,
  AGENT_NOT_FOUND: errors.AgentNotFound,
  SKILL_NOT_FOUND: errors.SkillNotFound,
  CALL_NOT_FOUND: errors.TaskNotFound,
  NOT_FOUND: errors.NotFound,
  AGENT_UNAVAILABLE: errors.AgentUnavailable,
  CIRCUIT_OPEN: errors.CircuitOpen,
  RATE_LIMITED: errors.RateLimited,
  AGENT_TIMEOUT: errors.AgentTimeout,
  AGENT_ERROR: errors.AgentError,
};
// An agent may give a reason, too: ours is one that is told with exactly this code.
const BY_REASON: Readonly<Record<string, readonly [string, Kind]>> = {
  overloaded: ['AGENT_UNAVAILABLE', errors.Overloaded],
  idempotency_conflict: ['VALIDATION_ERROR', errors.IdempotencyConflict],
  call_loop: ['VALIDATION_ERROR', errors.CallLoop],
  interrupted: ['AGENT_ERROR', errors.Interrupted],
  input_required: ['AGENT_ERROR', errors.InputRequired],
  auth_required: ['AGENT_ERROR', errors.InputRequired],
};
const BY_STATUS: Readonly<Record<number, readonly [string, Kind]>> = {
  401: ['AUTHORIZATION_ERROR', errors.NotAuthenticated],
  409: ['VALIDATION_ERROR', errors.Conflict],
  413: ['VALIDATION_ERROR', errors.TooLarge],
  500: ['AGENT_ERROR', errors.DragomanError],
};
const WAITING: readonly Kind[] = [errors.RateLimited, errors.Overloaded, errors.AgentUnavailable, errors.CircuitOpen];
const GIVE_A_TOKEN = 'Give a token: DRAGOMAN_TOKEN, or apiKey.';
const NEXT: ReadonlyMap<Kind, string> = new Map<Kind, string>([
  [errors.AgentNotFound, '`a2a.discover()` lists the agents.'],
  [errors.SkillNotFound, 'Its card lists the skills: `await a2a.card(agentId)`.'],
  [errors.TaskNotFound, 'Check the id; calls of other keys look unknown.'],
  [errors.InputRefused, '`error.details` has each failing path; the card has the schema.'],
  [errors.NotAuthenticated, GIVE_A_TOKEN],
  [errors.AgentTimeout, '`timeoutMs` allows more, `submit` does not wait at all.'],
  [errors.IdempotencyConflict, 'Use another idempotencyKey, or send the same input again.'],
  [errors.CallLoop, 'Call an agent that is not already waiting.'],
  [errors.DragomanError, "The hub's log says more."],
]);

/** The error that a refusal of the hub is, or of whatever answered in its place. */
export function errorOfReply(status: number, headers: Headers, body: unknown): errors.DragomanError {
  const said = isObject(body) ? body : {};
  const error = said['error'];
  if (!isObject(error)) return ofStatus(status, headers);
  const made = errorOfBody(error, status, headers.get('retry-after'));
  made.callId = textOf(said, 'call_id') ?? textOf(said, 'id');
  made.traceId = textOf(objectOf(said, 'trace'), 'trace_id');
  return made;
}

/** The error that a platform error object says: `{code, message, details, retryable}`. */
export function errorOfBody(error: JsonObject, status = 0, waited: string | null = null): errors.DragomanError {
  const details = { ...objectOf(error, 'details') };
  const kind = kindOf(textOf(error, 'code') ?? '', textOf(details, 'reason') ?? '', status);
  const facts: errors.ErrorFacts = { details };
  const waitS = seconds(details['retry_after']) ?? seconds(waited);
  if (WAITING.includes(kind)) facts.retryAfterS = waitS ?? 1;
  if (kind === errors.AgentError) facts.retryable = error['retryable'] === true;
  const nextStep = nextStepOf(kind, facts);
  if (nextStep !== undefined) facts.nextStep = nextStep;
  return new kind(textOf(error, 'message'), facts);
}

function kindOf(code: string, reason: string, status: number): Kind {
  const byReason = BY_REASON[reason];
  if (byReason?.[0] === code) return byReason[1];
  const byStatus = BY_STATUS[status];
  if (byStatus && (byStatus[0] === code || !(code in BY_CODE))) return byStatus[1];
  return BY_CODE[code] ?? (status >= 500 ? errors.DragomanError : errors.AgentError);
}

function nextStepOf(kind: Kind, facts: errors.ErrorFacts): string | undefined {
  if (facts.retryAfterS !== undefined) return `Try again in ${facts.retryAfterS} s.`;
  if (kind === errors.AgentError) return facts.retryable ? 'Trying again may help.' : 'Its log says more.';
  if (kind === errors.NotAuthorized) {
    const missing = ['missing', 'required']
      .map((name) => textsOf(facts.details ?? {}, name))
      .find((each) => each.length);
    return missing ? `The key needs: ${missing.join(', ')}.` : "Ask the hub's operator for a key that may do this.";
  }
  return NEXT.get(kind);
}

/** What has no error in it came from something in between, or from no hub at all. */
function ofStatus(status: number, headers: Headers): errors.DragomanError {
  const sentence = `The hub's address answered with HTTP ${status} and no error of a hub`;
  if (status === 401) return new errors.NotAuthenticated(sentence, { nextStep: GIVE_A_TOKEN });
  if (status === 429) {
    const retryAfterS = seconds(headers.get('retry-after')) ?? 1;
    return new errors.RateLimited(sentence, { retryAfterS, nextStep: `Try again in ${retryAfterS} s.` });
  }
  return new errors.HubUnreachable(sentence, {
    sent: true,
    reason: `http_${status}`,
    nextStep: 'Check that DRAGOMAN_URL leads to a hub, and what is between.',
  });
}

/** Something answered, and it was no hub. */
export function noHub(): errors.HubUnreachable {
  const nextStep = 'Check that DRAGOMAN_URL leads to a hub.';
  return new errors.HubUnreachable('What answers there is no hub', { sent: true, reason: 'protocol', nextStep });
}

function seconds(value: Json | undefined): number | undefined {
  const read = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof read === 'number' && Number.isInteger(read) && read > 0 && read <= LONGEST_WAIT_S ? read : undefined;
}
