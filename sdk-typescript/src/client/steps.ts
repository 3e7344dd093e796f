/** Steps that follow a call; the hub carries them through, also over its own restart. */
import type { Json, JsonObject } from '../json.js';

/** One step: a skill, perhaps of a certain agent, and what it is given. */
export interface Step {
  /** What later steps call its result. */
  id?: string;
  /** The skill. */
  skill: string;
  /** The agent; else the best one that has the skill. */
  agent?: string;
  /** What it is given, which may hold `stepResult(…)`; else the result of the step before. */
  input?: object;
}

/** Stands in an input for a result: of the step before, of the first call (`'0'`), or of the step with that id. */
export function stepResult(step = '-', pointer = ''): JsonObject {
  return { $from: pointer ? `${step}#${pointer}` : step };
}

/** The steps as the hub reads them; those in a list run at once. */
export function stepsBody(steps: readonly (Step | readonly Step[])[]): Json[] {
  return steps as unknown as Json[];
}
