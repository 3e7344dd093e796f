/**
 * What a handler returns or yields, as what its caller gets.
 *
 *     string, Text                       text          any JSON value            data
 *     File, bytes, Data, a list of parts those parts   undefined, RunResult      nothing; its content
 *
 * One text or one value is the call's `result`; files, or several parts, are the artifact `result`.
 */
import { Data, File, isPart, Message, partToWire, Text, type Part } from '../content.js';
import { AgentError } from '../errors.js';
import type { Json, JsonObject } from '../json.js';
import { RunResult } from '../run/models.js';

/** The artifact that is the answer, and the one that stands beside words that were streamed. */
export const RESULT = 'result';
export const PARTS = 'parts';

/** What a call ends with: a result, else parts, of which there may be none. */
export interface Answer {
  readonly result?: Json;
  readonly parts: readonly Part[];
}

/** What is said of an artifact. */
export interface ArtifactOptions {
  /** Its id; else its name, else made up. */
  id?: string | undefined;
  /** What it is called. */
  name?: string | undefined;
  /** What it is. */
  description?: string | undefined;
  /** What kind of content it is. */
  mimeType?: string | undefined;
  /** Add a piece to the one of that id. */
  append?: boolean | undefined;
  /** Whether it is complete; true unless said otherwise. */
  last?: boolean | undefined;
}

/** The parts that a value stands for. Throws AgentError for one that has no JSON form. */
export function partsOf(value: unknown): readonly Part[] {
  if (value === undefined || value === null) return [];
  if (value instanceof RunResult) return [new Text(value.content)];
  if (value instanceof Message) return value.parts;
  return Array.isArray(value) && value.some(isPart) ? value.map(partOf) : [partOf(value)];
}

/** What a call ends with that came to these parts. */
export function answerOf(parts: readonly Part[]): Answer {
  const [only, ...more] = parts;
  if (more.length || only === undefined || only.metadata) return { parts };
  if (only instanceof Text) return { result: only.text, parts: [] };
  // As a result a text would be words, and nothing would be no result at all.
  const isResult = only instanceof Data && only.value !== null && typeof only.value !== 'string';
  return isResult ? { result: only.value, parts: [] } : { parts };
}

/** An `artifact` event's data. */
export function artifactData(parts: readonly Part[], options: ArtifactOptions): JsonObject {
  const { id = RESULT, name, description, mimeType, append = false, last = true } = options;
  return { id, parts: parts.map((part) => partToWire(part)), append, last, name, description, mime_type: mimeType };
}

function partOf(value: unknown): Part {
  if (typeof value === 'string') return new Text(value);
  if (value instanceof Uint8Array) return new File({ bytes: value });
  if (value instanceof Data) return new Data(jsonOf(value.value), value.metadata);
  return isPart(value) ? value : new Data(jsonOf(value));
}

function jsonOf(value: unknown): Json {
  try {
    const text = JSON.stringify(value);
    if (text !== undefined) return JSON.parse(text) as Json;
  } catch {
    // Said below, for both.
  }
  throw new AgentError(`The agent returned a ${typeof value}, which has no JSON form.`);
}
