/** A call that was made before: how it stands, its result, its events, answers to it, its end. */
import type { Said } from '../content.js';
import { DragomanError, HubUnreachable } from '../errors.js';
import { currentScope } from '../scope.js';
import { later } from '../waiting.js';
import { askFor, CALL_MS } from './asking.js';
import { callPath, type HubApi } from './hub-api.js';
import { resultOfReply, statusOf, type CallResult, type CallStatus, type StreamEvent } from './results.js';
import { Ears } from './streams.js';

/** One call, by its id; there may be several handles of the same call, in several processes. */
export class CallHandle {
  /** The call's id. */
  readonly id: string;
  readonly #api: HubApi;

  /** @internal */
  constructor(api: HubApi, id: string) {
    this.#api = api;
    this.id = id;
  }

  /** How it stands now. Throws TaskNotFound. */
  async status(): Promise<CallStatus> {
    return statusOf(await this.#api.object('GET', `${callPath(this.id)}/status`));
  }

  /**
   * Its result, when it has ended. Throws what it failed with, InputRequired, CallCancelled.
   *
   * After `timeoutS` this throws a TimeoutError (a DOMException); the call itself goes on.
   */
  async result(options: { timeoutS?: number } = {}): Promise<CallResult> {
    if (options.timeoutS === undefined) return await this.#result();
    const seconds = options.timeoutS;
    return await new Promise<CallResult>((resolve, reject) => {
      const late = (): void => reject(new DOMException(`no result within ${seconds} s`, 'TimeoutError'));
      const cancel = later(seconds * 1000, late);
      this.#result().then(resolve, reject).finally(cancel);
    });
  }

  /** Its events from the beginning, or behind that number, until it ends. */
  stream(options: { after?: number } = {}): AsyncGenerator<StreamEvent> {
    return this.#api.events(new Ears(this.id, options.after ?? 0), undefined);
  }

  /** Answer what its agent asked, and wait for what follows. */
  async send(message: Said, options: { timeoutMs?: number } = {}): Promise<CallResult> {
    const asks = { scope: currentScope(), mostMs: CALL_MS, continues: this.id };
    return await this.#api.call(askFor({ message, timeoutMs: options.timeoutMs }, asks));
  }

  /** End it, and tell its agent. Throws Conflict where it had ended. */
  async cancel(reason?: string): Promise<CallStatus> {
    const body = reason === undefined ? undefined : { reason };
    // Not repeated by itself once it may have arrived: the second time it would be refused as ended.
    return statusOf(await this.#api.object('POST', `${callPath(this.id)}/cancel`, { body, repeatable: false }));
  }

  async #result(): Promise<CallResult> {
    const ended = await this.#ended();
    if (ended) return ended;
    let told: DragomanError = new HubUnreachable('The stream of the call ended before the call did.', { sent: true });
    try {
      for await (const event of this.stream()) void event;
    } catch (error) {
      if (!(error instanceof DragomanError) || error instanceof HubUnreachable) throw error;
      told = error;
    }
    const result = await this.#ended();
    if (result) return result;
    throw told;
  }

  /** Its result, if it has ended. */
  async #ended(): Promise<CallResult | undefined> {
    const reply = await this.#api.ask('GET', `${callPath(this.id)}/status`);
    return statusOf(reply.body as Parameters<typeof statusOf>[0]).ended ? resultOfReply(reply) : undefined;
  }
}
