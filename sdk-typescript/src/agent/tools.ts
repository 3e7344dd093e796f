/** Tools: functions that a model may have called. */
import type { JsonObject } from '../json.js';
import type { Context } from '../work/context.js';
import { currentScope } from '../scope.js';
import { published, readInput, type Schema } from './schema.js';

/** A function that a model may have called; it may be called like any other. */
export interface Tool<Input extends object = JsonObject, Result = unknown> {
  (input: Input): Promise<Result>;
  /** What the model calls it. */
  readonly name: string;
  /** What the model is told of it. */
  readonly description: string;
  /** The JSON Schema of its input. */
  inputSchema(): Promise<JsonObject>;
  /** The tool as chat completions take it. */
  toOpenaiSchema(): Promise<JsonObject>;
}

/** What the model is told of a tool. */
export interface ToolOptions<Input extends object> {
  /** What the model calls it. */
  name: string;
  /** What it is told. */
  description?: string;
  /** What the function is given: JSON Schema, or a schema of a library with `~standard`. */
  input?: Schema<Input>;
}

/** A function as a tool. Inside a handler it is given that handler's context. */
export function tool<Input extends object = JsonObject, Result = unknown>(
  options: ToolOptions<Input>,
  handler: (input: Input, ctx: Context | undefined) => Promise<Result> | Result,
): Tool<Input, Result> {
  const { name, description = '', input } = options;
  const schema = published(input, 'input') ?? { type: 'object' };
  return makeTool<Input, Result>(
    { name, description },
    async (given) => await handler((await readInput(input, given)) as Input, currentScope()?.context),
    () => Promise.resolve(schema),
  );
}

/** A tool whose schema is asked for once, when it is first wanted. */
export function makeTool<Input extends object, Result>(
  { name, description }: { name: string; description: string },
  call: (input: Input) => Promise<Result>,
  schema: () => Promise<JsonObject>,
): Tool<Input, Result> {
  let known: Promise<JsonObject> | undefined;
  const inputSchema = async (): Promise<JsonObject> => {
    known ??= schema();
    try {
      return await known;
    } catch (error) {
      known = undefined; // Asked again the next time.
      throw error;
    }
  };
  const toOpenaiSchema = async (): Promise<JsonObject> => {
    return {
      type: 'function',
      function: { name, description: description || undefined, parameters: await inputSchema() },
    };
  };
  const made = (input: Input): Promise<Result> => call(input);
  Object.defineProperty(made, 'name', { value: name });
  return Object.assign(made, { description, inputSchema, toOpenaiSchema });
}
