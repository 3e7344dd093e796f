/** One call as the hub gives it to an agent: read once, tolerant of what is missing, in the words of handlers. */
import { artifactFromWire, Data, Message, messageFromWire, Text, type Artifact } from '../content.js';
import { arrayOf, isObject, numberOf, objectOf, textOf, textsOf, type Json, type JsonObject } from '../json.js';
import { messageOfInput } from '../objects.js';

const MAX_REMEMBERED = 50; // turns of a conversation, as many as a hub sends

/** Who calls: an agent, somebody with a key, or nobody known. */
export interface Caller {
  /** Its id. */
  readonly id: string;
  /** What it is called. */
  readonly name: string;
  /** Whether it is an agent, somebody with a key, or nobody known. */
  readonly kind: 'agent' | 'key' | 'anonymous';
  /** What it speaks. */
  readonly dialect: string;
  /** What it may do. */
  readonly scopes: readonly string[];
}

/** An earlier call that this one refers to, and what came of it. */
export interface Reference {
  /** The call. */
  readonly callId: string;
  /** What came of it. */
  readonly artifacts: readonly Artifact[];
}

/** One call, as far as whoever carries it out has to know it. */
export interface Call {
  readonly id: string;
  readonly message: Message;
  readonly skill: string | undefined;
  readonly input: Json | undefined;
  readonly attempt: number;
  readonly caller: Caller;
  readonly conversationId: string;
  readonly priority: string;
  readonly metadata: JsonObject;
  readonly history: readonly Message[];
  readonly references: readonly Reference[];
  readonly answers: readonly JsonObject[];
  readonly deadline: Date | undefined;
  /** What is left of the time. */
  readonly timeMs: number | undefined;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  readonly traceparent: string | undefined;
}

/** The call that a frame brings. Throws BadRequest where its message makes no sense. */
export function readCall(call: JsonObject): Call {
  const options = objectOf(call, 'options');
  const context = objectOf(call, 'context');
  const { input, message } = call;
  const id = textOf(call, 'call_id') ?? '';
  return {
    id,
    message: message === undefined || message === null ? messageOfInput(input ?? {}) : readMessage(message),
    skill: textOf(call, 'skill'),
    input: input ?? undefined,
    attempt: numberOf(call, 'attempt') ?? 1,
    caller: readCaller(call),
    conversationId: textOf(context, 'conversation_id') ?? id,
    priority: textOf(options, 'priority') ?? 'normal',
    metadata: objectOf(context, 'metadata'),
    history: arrayOf(call, 'history').slice(-MAX_REMEMBERED).map(messageFromWire),
    references: arrayOf(call, 'references').filter(isObject).map(readReference),
    answers: arrayOf(call, 'answers').filter(isObject),
    ...readTime(call, numberOf(options, 'timeout_ms')),
    traceId: textOf(call, 'trace_id'),
    spanId: textOf(call, 'span_id'),
    traceparent: textOf(call, 'traceparent'),
  };
}

/** What was said; an object that holds nothing but text is that text. */
function readMessage(said: Json): Message {
  const message = messageFromWire(said);
  const [only, ...more] = message.parts;
  if (!(only instanceof Data) || more.length || !isObject(only.value)) return message;
  const { text, ...rest } = only.value;
  if (typeof text !== 'string' || Object.keys(rest).length) return message;
  return new Message([new Text(text)], message.role, message.id, message.metadata);
}

function readCaller(call: JsonObject): Caller {
  const said = objectOf(call, 'caller');
  const id = textOf(said, 'id') ?? textOf(call, 'caller_agent_id') ?? 'anonymous';
  const { kind } = said;
  return {
    id,
    name: textOf(said, 'name') ?? id,
    kind: kind === 'agent' || kind === 'key' ? kind : 'anonymous',
    dialect: textOf(said, 'dialect') ?? 'platform',
    scopes: textsOf(said, 'scopes'),
  };
}

function readReference(value: JsonObject): Reference {
  return { callId: textOf(value, 'call_id') ?? '', artifacts: arrayOf(value, 'artifacts').map(artifactFromWire) };
}

/** When it has to be done, and how long that is: by what is left, since two clocks never agree. */
function readTime(call: JsonObject, leftMs: number | undefined): Pick<Call, 'deadline' | 'timeMs'> {
  const at = Date.parse(textOf(call, 'deadline') ?? '');
  const said = Number.isNaN(at) ? undefined : new Date(at);
  if (leftMs !== undefined && leftMs > 0) return { deadline: said ?? new Date(Date.now() + leftMs), timeMs: leftMs };
  return { deadline: said, timeMs: said && at - Date.now() };
}
