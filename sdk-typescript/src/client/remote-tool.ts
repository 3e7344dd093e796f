/** A skill of an agent as a tool of a model. */
import { makeTool, type Tool } from '../agent/tools.js';
import { arrayOf, isObject, objectOf, type JsonObject } from '../json.js';
import type { A2AClient } from './client.js';

/** Which skill is meant, and what the model is told of it. */
export interface RemoteTool {
  /** The agent. */
  agentId: string;
  /** Its skill. */
  skill: string;
  /** What the model calls it; else the skill's name. */
  name?: string;
  /** What the model is told; else the skill's name. */
  description?: string;
  /** How long a call may take. */
  timeoutMs?: number;
}

/** The tool; `client` is asked for when it is used. */
export function remoteTool<Result>(described: RemoteTool, client: () => A2AClient): Tool<JsonObject, Result> {
  const { agentId, skill, timeoutMs, name = skill, description = skill } = described;
  return makeTool<JsonObject, Result>(
    { name, description },
    async (input) => await client().call<Result>({ target: agentId, skill, input, timeoutMs }),
    async () => schemaOf(await client().card(agentId.replace(/@.*$/, '')), skill),
  );
}

/** The input schema of a skill, as a card has it. */
function schemaOf(card: JsonObject, name: string): JsonObject {
  const skill =
    arrayOf(card, 'skills')
      .filter(isObject)
      .find((each) => each['name'] === name) ?? {};
  const schema = objectOf(skill, 'input_schema');
  return Object.keys(schema).length ? schema : { type: 'object' };
}
