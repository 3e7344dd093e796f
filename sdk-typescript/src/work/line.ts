/**
 * What leads from a handler to its caller and back: events in their order, notes between them, questions and answers.
 *
 * The n-th question takes the n-th answer: recorded ones first, then those that come.
 */
import { messageFromWire, type Message } from '../content.js';
import { AgentTimeout, CallCancelled } from '../errors.js';
import type { JsonObject } from '../json.js';
import { later } from '../waiting.js';

/** Takes what is said of a call; waits while too much of it is on its way. */
export type Emit = (event: string, data: JsonObject) => Promise<void>;

interface Waiting {
  answered(message: JsonObject): void;
  failed(error: Error): void;
}

/** The line of one call. Notes are bounded by the log's own bound; of usage only the latest counts. */
export class CallLine {
  /** Whether some words of the answer are out already. */
  streamed = false;
  /** The sums so far. */
  usage: JsonObject = {};
  readonly #emit: Emit;
  readonly #cancel = new AbortController();
  readonly #answers: JsonObject[] = [];
  readonly #waiting: Waiting[] = [];
  #turn: Promise<void> = Promise.resolve();
  #logged: JsonObject[] = [];
  #used = false;
  #over = false;
  #asked = 0;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Aborted when the call is cancelled, or its time is over. */
  get signal(): AbortSignal {
    return this.#cancel.signal;
  }

  /** Whether the handler waits for its caller. */
  get asking(): boolean {
    return this.#waiting.length > 0;
  }

  /** Tell the handler to end: what it waits for fails. */
  cancel(reason: string): void {
    this.#cancel.abort(new CallCancelled(`The call was cancelled: ${reason}`, { nextStep: '' }));
    for (const waiting of this.#waiting.splice(0)) waiting.failed(this.signal.reason as CallCancelled);
  }

  /** What was answered before, and comes before all that is answered now. */
  recorded(answers: readonly JsonObject[]): void {
    this.#answers.unshift(...answers);
  }

  /** What the caller says to the first question that waits, or to the next that is asked. */
  answer(message: JsonObject): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting.answered(message);
    else this.#answers.push(message);
  }

  /** Tell something of the call, after what was noted before. Throws CallCancelled after a cancel. */
  async say(event: string, data: JsonObject): Promise<void> {
    this.signal.throwIfAborted();
    await this.#inTurn(async () => {
      if (this.#over) return;
      this.streamed ||= event === 'chunk';
      await this.#emit(event, data);
    });
  }

  /** Tell the last thing of the call. */
  async end(event: string, data: JsonObject): Promise<void> {
    await this.#inTurn(async () => {
      await this.#emit(event, data);
      this.#over = true;
    });
  }

  /** Tell a line of the log when there is time. */
  log(line: JsonObject): void {
    this.#logged.push(line);
    this.#note();
  }

  /** Tell what was used up so far when there is time. */
  use(usage: JsonObject): void {
    this.usage = usage;
    this.#used = true;
    this.#note();
  }

  /** Ask the caller, and wait; what was answered before is returned at once. Throws AgentTimeout, CallCancelled. */
  async ask(event: 'ask' | 'auth', data: JsonObject, timeoutS?: number): Promise<Message> {
    this.signal.throwIfAborted();
    const number = this.#asked++;
    const before = this.#waiting.length ? undefined : this.#answers.shift();
    if (before) return messageFromWire(before);
    const answer = this.#answered(timeoutS);
    // Heard of below, also where telling the question fails first.
    answer.catch(() => undefined);
    await this.say(event, { ask: number, ...data });
    return messageFromWire(await answer);
  }

  async #answered(timeoutS: number | undefined): Promise<JsonObject> {
    return await new Promise<JsonObject>((resolve, reject) => {
      const waiting: Waiting = { answered: resolve, failed: reject };
      this.#waiting.push(waiting);
      if (timeoutS === undefined) return;
      const cancel = later(timeoutS * 1000, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(new AgentTimeout(`No answer came within ${timeoutS} s.`));
      });
      waiting.answered = (message) => (cancel(), resolve(message));
      waiting.failed = (error) => (cancel(), reject(error));
    });
  }

  #note(): void {
    if (!this.#over) void this.#inTurn(() => Promise.resolve());
  }

  /** One after the other, each after what was noted before it. */
  async #inTurn(tell: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(async () => {
      await this.#tellNotes();
      await tell();
    });
    this.#turn = turn.catch(() => undefined);
    await turn;
  }

  async #tellNotes(): Promise<void> {
    for (const line of this.#logged.splice(0)) if (!this.#over) await this.#emit('log', line);
    if (!this.#used || this.#over) return;
    this.#used = false;
    await this.#emit('usage', this.usage);
  }
}
