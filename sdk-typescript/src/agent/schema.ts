/** Schemas: JSON Schema as it is, or any object with `~standard` (Zod, ArkType, Valibot and others). */
import { AgentError, InputRefused, type DragomanError } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';

const TARGET = { target: 'draft-2020-12' } as const;

/** A schema of a library that follows Standard Schema; with `jsonSchema`, it is published too. */
export interface StandardSchema<Output = unknown> {
  /** What the library says of it. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate?: ((value: unknown) => Validated<Output> | Promise<Validated<Output>>) | undefined;
    readonly jsonSchema?:
      | {
          readonly input: (options: typeof TARGET) => Record<string, unknown>;
          readonly output: (options: typeof TARGET) => Record<string, unknown>;
        }
      | undefined;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a library says of a value: the value, or what is wrong with it. */
export type Validated<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** JSON Schema, as an object. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A schema of either kind; `Value` is what a handler gets. */
export type Schema<Value> = StandardSchema<Value> | JsonSchema;

/** Whether a library made it. */
export function isStandard(schema: Schema<unknown>): schema is StandardSchema {
  return '~standard' in schema;
}

/** The JSON Schema that is published; nothing where the library cannot say it. */
export function published(schema: Schema<unknown> | undefined, side: 'input' | 'output'): JsonObject | undefined {
  const made = schema && isStandard(schema) ? schema['~standard'].jsonSchema?.[side](TARGET) : schema;
  return made as JsonObject | undefined;
}

/** The input as its schema's library reads it. Throws InputRefused, naming each failing path. */
export async function readInput(schema: Schema<unknown> | undefined, value: unknown): Promise<unknown> {
  return await read(schema, value, (sentence, errors) => new InputRefused(sentence, { details: { errors } }));
}

/** What a handler returned, as its schema's library writes it. Throws AgentError. */
export async function readOutput(schema: Schema<unknown> | undefined, value: unknown): Promise<unknown> {
  return await read(
    schema,
    value,
    (sentence) => new AgentError(`The agent returned what it does not promise: ${sentence}`),
  );
}

/** A value as a schema has it; nothing where it does not fit. Of JSON Schema only `type` and `enum` are looked at. */
export async function fitted<Value>(schema: Schema<Value>, value: Json): Promise<{ value: Value } | undefined> {
  if (!isStandard(schema)) return fitsRoughly(schema, value) ? { value: value as Value } : undefined;
  const checked = await schema['~standard'].validate?.(value);
  if (!checked) return { value: value as Value };
  return checked.issues ? undefined : { value: checked.value as Value };
}

async function read(
  schema: Schema<unknown> | undefined,
  value: unknown,
  refusal: (sentence: string, errors: JsonObject[]) => DragomanError,
): Promise<unknown> {
  if (!schema || !isStandard(schema)) return value;
  const checked = await schema['~standard'].validate?.(value);
  if (!checked) return value;
  if (!checked.issues) return checked.value;
  const errors = checked.issues.map((issue) => ({ path: pathOf(issue), message: issue.message }));
  throw refusal(errors.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; '), errors);
}

function pathOf(issue: Issue): string {
  return (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
}

function fitsRoughly(schema: JsonSchema, value: Json): boolean {
  const kinds = [schema['type'] ?? []].flat();
  const allowed = schema['enum'];
  if (Array.isArray(allowed) && !allowed.includes(value)) return false;
  return kinds.length === 0 || kinds.some((kind) => isOfKind(value, kind));
}

function isOfKind(value: Json, kind: unknown): boolean {
  if (kind === 'integer') return Number.isInteger(value);
  if (kind === 'array') return Array.isArray(value);
  if (kind === 'object') return isObject(value);
  return kind === 'null' ? value === null : typeof value === kind;
}
