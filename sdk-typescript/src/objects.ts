/**
 * Parts, and the one JSON object that a platform call knows instead: each way, without loss.
 *
 * To an object: a lone object is itself; text is the schema's one required text property, else `{text}`; anything else
 * is `{parts: […]}`. Back: an object is one data part, save one that lists parts with a file among them.
 */
import { Data, File, Message, partToWire, readPart, Text, type Part } from './content.js';
import { isObject, objectOf, parsed, textsOf, type Json, type JsonObject } from './json.js';

/** What a message is as the input of a skill with that schema. */
export function inputOfMessage(message: Message, schema: JsonObject | undefined): JsonObject {
  const [only, ...more] = message.parts;
  if (more.length === 0 && only instanceof Data && isObject(only.value)) return only.value;
  if (more.length === 0 && only instanceof Text) {
    const value = only.text.startsWith('{') ? parsed(only.text) : undefined;
    return isObject(value) ? value : { [onlyText(schema) ?? 'text']: only.text };
  }
  return { parts: message.parts.map((part) => partToWire(part, true)) };
}

/** What an input object stands for as a message: its lone text, the parts it lists, else the object itself. */
export function messageOfInput(value: Json): Message {
  const text = isObject(value) && Object.keys(value).length === 1 ? value['text'] : undefined;
  if (typeof text === 'string') return new Message([new Text(text)]);
  const listed = listedParts(value);
  return new Message(listed?.some((part) => part instanceof File) ? listed : [new Data(value)]);
}

/** The parts that a result stands for: those it lists, its lone text, or itself. */
export function partsOfResult(result: JsonObject): Part[] {
  const [name, ...more] = Object.keys(result);
  if (name === undefined) return [];
  if (more.length === 0 && name === 'text' && typeof result[name] === 'string') return [new Text(result[name])];
  return listedParts(result) ?? [new Data(result)];
}

/** What is said to an agent, as members of a request: words as `message`, one object as `input`, else parts. */
export function bodyOfMessage(message: Message): JsonObject {
  const [only, ...more] = message.parts;
  if (more.length === 0 && only instanceof Text && !only.metadata) return { message: only.text };
  if (more.length === 0 && only instanceof Data && !only.metadata && isObject(only.value)) return { input: only.value };
  return { message: message.parts.map((part) => partToWire(part, true)) };
}

/** The parts of `{parts: […]}`; nothing where it is anything else, or one of them is no part. */
function listedParts(value: Json): Part[] | undefined {
  const listed = isObject(value) && Object.keys(value).length === 1 ? value['parts'] : undefined;
  if (!Array.isArray(listed)) return undefined;
  const parts = listed.map(readPart).filter((part) => part !== undefined);
  return parts.length === listed.length ? parts : undefined;
}

/** The name of a schema's one required text property. */
function onlyText(schema: JsonObject = {}): string | undefined {
  const properties = objectOf(schema, 'properties');
  const names = textsOf(schema, 'required').filter((name) => objectOf(properties, name)['type'] === 'string');
  return names.length === 1 ? names[0] : undefined;
}
