/**
 * What a hub posts, checked by whoever receives it: every signature that is there, and the time.
 *
 *     X-Signature: sha256=<hex>        keyed with the secret as text, over the body
 *     webhook-signature: v1,<base64>   Standard Webhooks: keyed with the decoded secret, over "id.timestamp.body"
 */
import { fromBase64 } from '../content.js';
import { BadSignature } from '../errors.js';
import { isObject, parsed, type JsonObject } from '../json.js';

const PREFIX = 'whsec_';
const WINDOW_S = 300;
const MOST_SIGNATURES = 8;
const encoder = new TextEncoder();

/** Headers as a server has them. */
export type ReceivedHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The callback, when every signature on it is right and not older than 300 s. Throws BadSignature.
 *
 * Hand in the raw body. Several secrets: any of them will do, for the time of a rotation. Whether it came before is
 * for the receiver to look up: its `webhook-id` is the same over all deliveries.
 */
export async function verifySignature(
  body: string | Uint8Array | ArrayBuffer,
  headers: ReceivedHeaders,
  secret: string | readonly string[],
): Promise<JsonObject> {
  const raw = bytesOf(body);
  const secrets = typeof secret === 'string' ? [secret] : secret;
  const header = reader(headers);
  const webhook = header('webhook-signature');
  const first = header('x-signature');
  if (!webhook && !first) throw bad('not signed', 'signature_missing', 'Calls made with a key are: was this one?');
  if (webhook) {
    const id = header('webhook-id');
    const at = header('webhook-timestamp');
    const signed = joined(encoder.encode(`${id}.${at}.`), raw);
    if (!id || !(await anyWebhook(secrets, webhook, signed))) throw wrong();
    refuseOld(at);
  }
  if (first) {
    const given = bytesOfHex(first.replace(/^sha256=/, ''));
    if (!first.startsWith('sha256=') || !(await any(secrets, (one) => matches(encoder.encode(one), given, raw))))
      throw wrong();
    refuseOld(header('x-timestamp'));
  }
  const told = parsed(new TextDecoder().decode(raw));
  if (isObject(told)) return told;
  throw bad('no JSON object', 'not_json', 'It was signed with this secret by something that is no hub.');
}

async function anyWebhook(secrets: readonly string[], header: string, signed: Uint8Array): Promise<boolean> {
  const values = header.split(' ').filter((value) => value.startsWith('v1,'));
  const given = values.slice(0, MOST_SIGNATURES).map((value) => fromBase64(value.slice(3)));
  return await any(secrets, async (secret) => {
    const key = secret.startsWith(PREFIX) ? fromBase64(secret.slice(PREFIX.length)) : undefined;
    return key !== undefined && (await any(given, (one) => matches(key, one, signed)));
  });
}

/** Whether it holds for any of them; all are tried, so that the time does not tell which. */
async function any<Each>(all: readonly Each[], holds: (each: Each) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(all.map(holds))).includes(true);
}

async function matches(secret: Uint8Array, given: Uint8Array | undefined, signed: Uint8Array): Promise<boolean> {
  if (!given || !secret.length) return false;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', new Uint8Array(secret), algorithm, false, ['verify']);
  return await crypto.subtle.verify('HMAC', key, new Uint8Array(given), new Uint8Array(signed));
}

function refuseOld(timestamp: string): void {
  if (/^\d{1,12}$/.test(timestamp) && Math.abs(Date.now() / 1000 - Number(timestamp)) <= WINDOW_S) return;
  throw bad('too old or too new', 'timestamp_out_of_range', 'Check both clocks; 300 s are allowed.');
}

function reader(headers: ReceivedHeaders): (name: string) => string {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const lowered = new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value ?? '')]));
  return (name) => lowered.get(name) ?? '';
}

function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  return typeof body === 'string' ? encoder.encode(body) : new Uint8Array(body);
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const all = new Uint8Array(head.length + tail.length);
  all.set(head);
  all.set(tail, head.length);
  return all;
}

function bytesOfHex(text: string): Uint8Array | undefined {
  const pairs = /^(?:[0-9a-f]{2})+$/.test(text) ? (text.match(/../g) ?? []) : undefined;
  return pairs && Uint8Array.from(pairs, (pair) => parseInt(pair, 16));
}

function wrong(): BadSignature {
  return bad('wrongly signed', 'signature_invalid', 'Check the secret, and hand in the raw body.');
}

function bad(what: string, reason: string, nextStep: string): BadSignature {
  return new BadSignature(`The callback is ${what}`, { details: { reason }, nextStep });
}
