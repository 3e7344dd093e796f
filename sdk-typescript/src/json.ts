/** JSON values, and how unknown ones are looked into. */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
export type JsonObject = { [key: string]: Json };

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

/** An object without the members that are undefined. */
export function without<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
