/** Server-Sent Events, from text in pieces to events. Comments only show that somebody is there. */

/** One event; `id` is empty where it has none. */
export interface SseEvent {
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** Reads one stream. Throws RangeError for an event larger than the bound. */
export class SseParser {
  readonly #most: number;
  #rest = '';
  #id = '';
  #name = '';
  #data: string[] = [];
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** The events that this piece completes. */
  feed(text: string): SseEvent[] {
    const whole = this.#rest + text;
    // What may be half of a line's end waits for the other half.
    const held = whole.endsWith('\r') ? 1 : 0;
    const lines = whole.slice(0, whole.length - held).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + (held ? '\r' : '');
    const events: SseEvent[] = [];
    for (const line of lines) this.#read(line, events);
    if (this.#rest.length + this.#size > this.#most) throw new RangeError('an event is too large');
    return events;
  }

  #read(line: string, events: SseEvent[]): void {
    if (line === '') {
      if (this.#data.length) events.push({ id: this.#id, name: this.#name || 'message', data: this.#data.join('\n') });
      this.#id = this.#name = '';
      this.#data = [];
      this.#size = 0;
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') {
      this.#data.push(value);
      this.#size += value.length;
    } else if (field === 'event') this.#name = value;
    else if (field === 'id') this.#id = value;
  }
}
