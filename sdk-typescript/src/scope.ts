/**
 * What a running handler passes on by itself to the calls that it makes.
 *
 * Kept in an AsyncLocalStorage, which reaches everything that a handler awaits or starts. Where there is none, as in a
 * browser, only what goes through the handler's own `ctx` knows its call.
 */
import type { A2AClient } from './client/client.js';
import type { Context } from './work/context.js';

/** The call that is being carried out, as far as calls made on its behalf have to know it. */
export interface Scope {
  readonly callId: string;
  readonly conversationId: string | undefined;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  readonly traceparent: string | undefined;
  /** On the clock of `now()`. */
  readonly deadline: number | undefined;
  readonly signal: AbortSignal;
  client?: A2AClient;
  context?: Context;
}

interface Storage {
  getStore(): Scope | undefined;
  run<Result>(scope: Scope, work: () => Result): Result;
}

// A name in a variable: bundlers for browsers would otherwise look for the module.
const HOOKS = 'node:async_hooks';
let storage: Storage | undefined;

/** Have scopes kept, where there is something to keep them in; before the first handler runs. */
export async function keepScopes(): Promise<void> {
  if (storage) return;
  try {
    const hooks = (await import(
      /* webpackIgnore: true */ /* @vite-ignore */ HOOKS
    )) as typeof import('node:async_hooks');
    storage ??= new hooks.AsyncLocalStorage<Scope>();
  } catch {
    // A browser: `ctx` has to be used.
  }
}

/** The scope of the handler that runs; nothing outside of handlers. */
export function currentScope(): Scope | undefined {
  return storage?.getStore();
}

/** Let everything that starts inside belong to that scope. */
export function within<Result>(scope: Scope, work: () => Result): Result {
  return storage ? storage.run(scope, work) : work();
}
