/**
 * What agents and callers say to each other: text, data, files, and messages made of them.
 *
 * Between a hub and an agent that connected to it a part is
 * `{text} | {data} | {file: {name?, mime_type?, bytes: base64 | uri}}`, and may have `metadata`.
 */
import { BadRequest } from './errors.js';
import { arrayOf, isObject, objectOf, textOf, type Json, type JsonObject } from './json.js';

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
    this.bytes = content.bytes;
    this.uri = content.uri;
    this.name = content.name;
    this.mimeType = content.mimeType;
    this.metadata = content.metadata;
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

/** A part as it travels between an agent and its hub. */
export function partToWire(part: Part): JsonObject {
  const metadata: JsonObject = part.metadata && Object.keys(part.metadata).length ? { metadata: part.metadata } : {};
  if (part instanceof Text) return { text: part.text, ...metadata };
  if (part instanceof Data) return { data: part.value, ...metadata };
  return { file: fileToWire(part, 'mime_type'), ...metadata };
}

/** A file as it travels; dialects differ in how they call its kind. */
export function fileToWire(file: File, kind: 'mime_type' | 'mimeType'): JsonObject {
  return {
    ...(file.bytes === undefined ? { uri: file.uri ?? '' } : { bytes: toBase64(file.bytes) }),
    ...(file.name ? { name: file.name } : {}),
    ...(file.mimeType ? { [kind]: file.mimeType } : {}),
  };
}

/** The file that travelled like this. Throws BadRequest for what is none. */
export function fileFromWire(file: JsonObject, kind: 'mime_type' | 'mimeType', metadata?: JsonObject): File {
  const { bytes, uri } = file;
  const named = { name: textOf(file, 'name'), mimeType: textOf(file, kind), metadata };
  if (typeof bytes === 'string' && uri === undefined) return new File({ bytes: fromBase64(bytes), ...named });
  if (typeof uri === 'string' && bytes === undefined) return new File({ uri, ...named });
  throw new BadRequest('A file has either bytes or a uri.');
}

/** The part that travelled like this. Throws BadRequest for what is none. */
export function partFromWire(value: Json): Part {
  if (isObject(value)) {
    const metadata = isObject(value['metadata']) ? value['metadata'] : undefined;
    const { text, data, file } = value;
    if (typeof text === 'string') return new Text(text, metadata);
    if (data !== undefined) return new Data(data, metadata);
    if (isObject(file)) return fileFromWire(file, 'mime_type', metadata);
  }
  throw new BadRequest('A part is an object with text, data or file.');
}

/** The message that travelled like this. Throws BadRequest for what is none. */
export function messageFromWire(value: Json): Message {
  if (!isObject(value) || !Array.isArray(value['parts'])) throw new BadRequest('A message is an object with parts.');
  return new Message(
    value['parts'].map(partFromWire),
    value['role'] === 'agent' ? 'agent' : 'user',
    textOf(value, 'id'),
    objectOf(value, 'metadata'),
  );
}

/** The artifact that travelled like this. Throws BadRequest for what is none. */
export function artifactFromWire(value: Json): Artifact {
  if (!isObject(value)) throw new BadRequest('An artifact is an object with parts.');
  const parts = arrayOf(value, 'parts').map(partFromWire);
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

function fromBase64(encoded: string): Uint8Array {
  try {
    return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  } catch {
    throw new BadRequest("A file's bytes are base64.");
  }
}
