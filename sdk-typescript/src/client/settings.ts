/** Which hub is meant, and which token it is shown: what was given, the environment where there is one, the default. */
import { BadRequest } from '../errors.js';

const DEFAULT_HUB = 'http://127.0.0.1:8700';

/** How a hub is reached. */
export interface Settings {
  /** The hub's address; else DRAGOMAN_URL, else http://127.0.0.1:8700. */
  baseUrl?: string | undefined;
  /** The token it is shown; else DRAGOMAN_TOKEN, else none. */
  apiKey?: string | undefined;
}

/** The hub that is meant, without a slash at its end. Throws BadRequest for what is no URL. */
export function hubUrl(given: string | undefined): string {
  const url = given || environment('DRAGOMAN_URL') || DEFAULT_HUB;
  const parts = URL.canParse(url) ? new URL(url) : undefined;
  if (!parts || !/^https?:$/.test(parts.protocol) || parts.search || parts.hash) {
    throw new BadRequest(`"${url}" is no URL of a hub`, { nextStep: `Give one such as ${DEFAULT_HUB}.` });
  }
  return url.replace(/\/+$/, '');
}

/** The token that is meant, if there is any. */
export function hubToken(given: string | undefined): string | undefined {
  return given || environment('DRAGOMAN_TOKEN') || undefined;
}

function environment(name: string): string | undefined {
  return typeof process === 'undefined' ? undefined : process.env?.[name];
}
