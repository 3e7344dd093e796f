/**
 * Large events in pieces: what is too much for one of them goes in several, each appended to the one before.
 *
 * Words are cut anywhere, an artifact's parts between them; data and a file stay whole, however large they are.
 */
import { sizeOf, type Json, type JsonObject, isObject } from '../json.js';

const PIECE_BYTES = 512 * 1024;
const FEW = PIECE_BYTES / 8; // so few characters are never what makes something large

/** The data of an event, or of those that say the same in pieces. */
export function pieces(event: string, data: JsonObject): JsonObject[] {
  const { parts } = data;
  if (event === 'chunk') return cut(data, 'content');
  if (event !== 'artifact' || !Array.isArray(parts) || sizeOf(data) <= PIECE_BYTES) return [data];
  const groups = grouped(parts);
  const { id, mime_type } = data;
  return groups.map((group, place) => ({
    ...(place === 0 ? data : { id, mime_type }),
    parts: group,
    append: place > 0 || data['append'] === true,
    last: place === groups.length - 1 && data['last'] !== false,
  }));
}

function grouped(parts: Json[]): Json[][] {
  const groups: Json[][] = [];
  let group: Json[] = [];
  let size = 0;
  for (const part of parts.flatMap((part): Json[] => (isObject(part) ? cut(part, 'text') : [part]))) {
    const more = sizeOf(part);
    if (group.length && size + more > PIECE_BYTES) {
      groups.push(group);
      group = [];
      size = 0;
    }
    group.push(part);
    size += more;
  }
  return [...groups, group];
}

/** An object whose words of that name are too many, as several; any other as it is. */
function cut(value: JsonObject, name: string): JsonObject[] {
  const text = value[name];
  if (typeof text !== 'string' || text.length < FEW || sizeOf(value) <= PIECE_BYTES) return [value];
  let middle = text.length >> 1;
  // Not between the two halves of one character.
  if (/[\udc00-\udfff]/.test(text.charAt(middle))) middle += 1;
  return [text.slice(0, middle), text.slice(middle)].flatMap((half) => cut({ ...value, [name]: half }, name));
}
