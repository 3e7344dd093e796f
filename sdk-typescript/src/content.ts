/**
 * What agents and callers say to each other: text, data, files, and messages made of them.
 *
 * Between a hub and an agent that connected to it a part is
 * `{text} | {data} | {file: {name?, mime_type?, bytes: base64 | uri}}`, and may have `metadata`.
 */
import { BadRequest } from './errors.js';
import { arrayOf, filled, isObject, objectOf, textOf, type Json, type JsonObject } from './json.js';

/** Plain text. */
export class Text {
  constructor(
    /** The words. */
    readonly text: string,
    /** What is said about them. */
    readonly metadata?: JsonObject,
  ) {}
}

/** Any JSON value. */
export class Data {
  constructor(
    /** The value. */
    readonly value: Json,
    /** What is said about it. */
    readonly metadata?: JsonObject,
  ) {}
}

/** What a file is made of: its bytes, or the address where it is. */
export type FileContent = ({ bytes: Uint8Array; uri?: undefined } | { uri: string; bytes?: undefined }) & {
  name?: string | undefined;
  mimeType?: string | undefined;
  metadata?: JsonObject | undefined;
};

/** A file: its bytes, or the address where it is. */
export class File {
  /** Its content, where it is here. */
  readonly bytes: Uint8Array | undefined;
  /** Where it is, where it is elsewhere. */
  readonly uri: string | undefined;
  /** What it is called. */
  readonly name: string | undefined;
  /** What kind of file it is. */
  readonly mimeType: string | undefined;
  /** What is said about it. */
  readonly metadata: JsonObject | undefined;

  constructor(content: FileContent) {
    if ((content.bytes === undefined) === (content.uri === undefined)) {
      throw new TypeError('A File has either bytes or a uri.');
    }
    ({ bytes: this.bytes, uri: this.uri, name: this.name, mimeType: this.mimeType, metadata: this.metadata } = content);
  }
}

/** One piece of content. */
export type Part = Text | Data | File;

/** What may be said to an agent: words, a part, several, or a whole message. */
export type Said = string | Part | readonly Part[] | Message;

/** One turn of a conversation. */
export class Message {
  constructor(
    /** Its content. */
    readonly parts: readonly Part[],
    /** Who said it. */
    readonly role: 'user' | 'agent' = 'user',
    /** Its id, where it has one. */
    readonly id: string = '',
    /** What is said about it. */
    readonly metadata: JsonObject = {},
  ) {}

  /** Its words, those of several parts line by line. */
  get text(): string {
    return textsIn(this.parts).join('\n');
  }

  /** The value of its first data part. */
  get data(): Json | undefined {
    return dataIn(this.parts);
  }

  /** Its files. */
  get files(): File[] {
    return this.parts.filter((part) => part instanceof File);
  }
}

/** Something that an agent made. */
export class Artifact {
  constructor(
    /** Its id, unique in its call. */
    readonly id: string,
    /** Its content. */
    readonly parts: readonly Part[],
    /** What it is called. */
    readonly name?: string,
    /** What it is. */
    readonly description?: string,
  ) {}

  /** Its words, put together as they came. */
  get text(): string {
    return textsIn(this.parts).join('');
  }

  /** The value of its first data part. */
  get data(): Json | undefined {
    return dataIn(this.parts);
  }
}

/** What somebody says, as a message. */
export function messageOf(said: Said): Message {
  if (said instanceof Message) return said;
  if (typeof said === 'string') return new Message([new Text(said)]);
  return new Message(isPart(said) ? [said] : said);
}

/** Whether a value is a part. */
export function isPart(value: unknown): value is Part {
  return value instanceof Text || value instanceof Data || value instanceof File;
}

/** The words of the text parts. */
export function textsIn(parts: readonly Part[]): string[] {
  return parts.filter((part) => part instanceof Text).map((part) => part.text);
}

/** A part as it travels: between an agent and its hub, or, `plain`, in a platform call, which says its kind too. */
export function partToWire(part: Part, plain = false): JsonObject {
  const metadata = filled(part.metadata);
  const kind = (name: string): string | undefined => (plain ? name : undefined);
  if (part instanceof Text) return { kind: kind('text'), text: part.text, metadata };
  if (part instanceof Data) return { kind: kind('data'), data: part.value, metadata };
  const { bytes, uri, name, mimeType } = part;
  const content = { bytes: bytes && toBase64(bytes), uri, name, [plain ? 'mimeType' : 'mime_type']: mimeType };
  return { kind: kind('file'), file: content, metadata };
}

/** The part that travelled like this, either way; nothing for what is none. */
export function readPart(value: Json): Part | undefined {
  if (!isObject(value)) return undefined;
  const metadata = isObject(value['metadata']) ? value['metadata'] : undefined;
  const { text, data, file } = value;
  if (typeof text === 'string') return new Text(text, metadata);
  if (data !== undefined) return new Data(data, metadata);
  if (!isObject(file)) return undefined;
  const { bytes, uri } = file;
  const named = {
    name: textOf(file, 'name'),
    mimeType: textOf(file, 'mime_type') ?? textOf(file, 'mimeType'),
    metadata,
  };
  const raw = typeof bytes === 'string' ? fromBase64(bytes) : undefined;
  if (raw) return new File({ bytes: raw, ...named });
  return typeof uri === 'string' ? new File({ uri, ...named }) : undefined;
}

/** The parts of a list. Throws BadRequest where one of them is none. */
export function partsFromWire(values: readonly Json[]): Part[] {
  return values.map((value) => {
    const part = readPart(value);
    if (part) return part;
    throw new BadRequest('A part is an object with text, data or file.');
  });
}

/** The message that travelled like this. Throws BadRequest for what is none. */
export function messageFromWire(value: Json): Message {
  if (!isObject(value) || !Array.isArray(value['parts'])) throw new BadRequest('A message is an object with parts.');
  return new Message(
    partsFromWire(value['parts']),
    value['role'] === 'agent' ? 'agent' : 'user',
    textOf(value, 'id'),
    objectOf(value, 'metadata'),
  );
}

/** The artifact that travelled like this. Throws BadRequest for what is none. */
export function artifactFromWire(value: Json): Artifact {
  if (!isObject(value)) throw new BadRequest('An artifact is an object with parts.');
  const parts = partsFromWire(arrayOf(value, 'parts'));
  return new Artifact(textOf(value, 'id') ?? '', parts, textOf(value, 'name'), textOf(value, 'description'));
}

function dataIn(parts: readonly Part[]): Json | undefined {
  return parts.find((part) => part instanceof Data)?.value;
}

function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  // In pieces: a function takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  }
  return btoa(pieces.join(''));
}

/** The bytes that a text is the base64 of; nothing where it is none. */
export function fromBase64(encoded: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
