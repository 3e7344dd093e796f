/** JSON values, and how unknown ones are looked into. */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object; members that are undefined are left out when it is sent. */
export type JsonObject = { [key: string]: Json | undefined };

const encoder = new TextEncoder();

/** Whether a value is an object, and neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text of that name; nothing where it is empty or no text. */
export function textOf(value: JsonObject, name: string): string | undefined {
  const found = value[name];
  return typeof found === 'string' && found !== '' ? found : undefined;
}

/** The number of that name. */
export function numberOf(value: JsonObject, name: string): number | undefined {
  const found = value[name];
  return typeof found === 'number' ? found : undefined;
}

/** The object of that name, else an empty one. */
export function objectOf(value: JsonObject, name: string): JsonObject {
  const found = value[name];
  return isObject(found) ? found : {};
}

/** The list of that name, else an empty one. */
export function arrayOf(value: JsonObject, name: string): Json[] {
  const found = value[name];
  return Array.isArray(found) ? found : [];
}

/** The texts among a list of that name. */
export function textsOf(value: JsonObject, name: string): string[] {
  return arrayOf(value, name).filter((each) => typeof each === 'string');
}

/** What a text is the JSON of; undefined where it is no JSON. */
export function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** How many bytes a value takes as JSON. */
export function sizeOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}

/** The members of an object that are not undefined, as text. */
export function written(value: Readonly<Record<string, string | number | undefined>>): Record<string, string> {
  const known = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(known.map(([name, each]) => [name, String(each)]));
}

/** An object whose members are named as TypeScript names them: `call_id` is `callId`. */
export function camelCased(value: JsonObject): JsonObject {
  const camel = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [camel(name), each]));
}

/** The object, unless it is empty. */
export function filled(value: JsonObject | undefined): JsonObject | undefined {
  return value && Object.keys(value).length ? value : undefined;
}
