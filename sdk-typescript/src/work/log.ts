/** Log lines: for the local log, and a handler's own for the call's timeline in the hub. */
import { filled, sizeOf, type Json, type JsonObject } from '../json.js';

const LINES = 100;
const BYTES = 2048;

/** How much a line matters. */
export type Level = 'debug' | 'info' | 'warning' | 'error';

/** Takes a line of the local log. */
export type Log = (level: Level, message: string, fields: Readonly<Record<string, unknown>>) => void;

/** Warnings and errors to the console, the rest nowhere. */
export function toConsole(level: Level, message: string, fields: Readonly<Record<string, unknown>>): void {
  const more = Object.keys(fields).length ? [fields] : [];
  if (level === 'error') console.error(message, ...more);
  if (level === 'warning') console.warn(message, ...more);
}

/** Lines for the local log, and for the call's timeline in the hub: 100 of them, of 2 KiB each. */
export class CallLog {
  #lines = 0;
  readonly #callId: string;
  readonly #note: (data: JsonObject) => void;
  readonly #local: Log;

  /** @internal */
  constructor(callId: string, note: (data: JsonObject) => void, local: Log) {
    this.#callId = callId;
    this.#note = note;
    this.#local = local;
  }

  /** A line for who looks for a fault. */
  debug(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('debug', message, fields);
  }

  /** A line that tells what happens. */
  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('info', message, fields);
  }

  /** A line that somebody should see. */
  warning(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('warning', message, fields);
  }

  /** A line that somebody has to see. */
  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#write('error', message, fields);
  }

  #write(level: Level, message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#local(level, message, { callId: this.#callId, ...fields });
    if (++this.#lines > LINES) return;
    const line: JsonObject = { level, message, at: new Date().toISOString() };
    const told = Object.entries(fields).map(([name, value]) => [name, jsonOf(value)] as const);
    const whole = { ...line, fields: filled(Object.fromEntries(told)) };
    if (sizeOf(whole) <= BYTES) this.#note(whole);
    // Each character takes up to six bytes in JSON.
    else this.#note(sizeOf(line) <= BYTES ? line : { ...line, message: `${message.slice(0, BYTES / 8)}…` });
  }
}

function jsonOf(value: unknown): Json {
  try {
    return (JSON.parse(JSON.stringify(value) ?? 'null') as Json) ?? String(value);
  } catch {
    return String(value);
  }
}
