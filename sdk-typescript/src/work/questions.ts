/** Answers to what a handler asked: a caller's words or data as what was asked for. */
import { fitted, type Schema } from '../agent/schema.js';
import type { Message } from '../content.js';
import { isObject, parsed, type Json } from '../json.js';

const WORDS: Readonly<Record<string, boolean>> = { yes: true, y: true, no: false, n: false };

/** An answer that fits the schema, whatever form it came in; nothing where none does. */
export async function answerAs<Value>(message: Message, schema: Schema<Value>): Promise<{ value: Value } | undefined> {
  for (const value of readings(message)) {
    const fits = await fitted(schema, value);
    if (fits) return fits;
  }
  return undefined;
}

/** What a message says in words: its text, the text of its only field, else its JSON. */
export function wordsOf(message: Message): string {
  const { text, data } = message;
  if (text || data === undefined) return text;
  const only = isObject(data) && Object.keys(data).length === 1 ? Object.values(data)[0] : data;
  return typeof only === 'string' ? only : JSON.stringify(data);
}

/** What may be meant: the data, the value of its only field, the words, their JSON, or what people write for it. */
function* readings({ data, text }: Message): Generator<Json> {
  const inside = isObject(data) && Object.keys(data).length === 1 ? Object.values(data) : [];
  for (const value of [data, ...inside, text || undefined]) {
    if (value === undefined) continue;
    yield value;
    if (typeof value !== 'string') continue;
    const tidy = value.trim();
    const read = parsed(tidy) ?? WORDS[tidy.toLowerCase()];
    if (read !== undefined) yield read;
  }
}
