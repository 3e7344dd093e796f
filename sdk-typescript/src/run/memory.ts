/** What was said in each conversation with a model. Bounded; of the conversations, the one unused for longest goes. */
import type { ModelMessage } from './models.js';

const CONVERSATIONS = 1000;
const TURNS = 50;
const CHARACTERS = 128 * 1024; // of one conversation

/** The conversations of one agent. */
export class Memory {
  readonly #turns = new Map<string, readonly ModelMessage[]>();

  /** The turns so far, oldest first. */
  turns(name: string): readonly ModelMessage[] {
    return this.#turns.get(name) ?? [];
  }

  /** Note further turns, each a question and its answer. */
  add(name: string, ...turns: ModelMessage[]): void {
    const all = newest([...this.turns(name), ...turns]);
    this.#turns.delete(name);
    this.#turns.set(name, all);
    const [oldest] = this.#turns.keys();
    if (this.#turns.size > CONVERSATIONS && oldest !== undefined) this.#turns.delete(oldest);
  }
}

/** The newest of the turns that the bounds allow; they begin with what a user said. */
export function newest(turns: readonly ModelMessage[]): readonly ModelMessage[] {
  const kept = turns.slice(-TURNS);
  let size = kept.reduce((sum, turn) => sum + turn.text.length, 0);
  while (kept[0] && (size > CHARACTERS || kept[0].role !== 'user')) size -= kept.shift()?.text.length ?? 0;
  return kept;
}
