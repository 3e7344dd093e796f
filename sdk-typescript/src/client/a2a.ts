/** `a2a`: the client of the handler that runs, else the one of this process. */
import { currentScope } from '../scope.js';
import { A2AClient } from './client.js';
import { remoteTool } from './remote-tool.js';
import { hubToken, hubUrl, type Settings } from './settings.js';
import { verifySignature } from './signatures.js';

const FORWARDED = ['call', 'callFull', 'stream', 'submit', 'handle', 'discover', 'card', 'register', 'rate'] as const;

/** Agents, through the hub of this process; inside a handler as the agent itself. */
export interface A2A extends Pick<A2AClient, (typeof FORWARDED)[number] | 'tool'> {
  /** Which hub is meant, and what it is shown; the environment has the rest. */
  configure(settings: Settings): void;
  /** The callback, when every signature on it is right. */
  verifySignature: typeof verifySignature;
}

let configured: Settings = {};
let ofProcess: { key: string; client: A2AClient } | undefined;

/** Agents, through the hub of this process; inside a handler as the agent itself. */
export const a2a: A2A = {
  ...(Object.fromEntries(FORWARDED.map((name) => [name, forward(name)])) as Pick<
    A2AClient,
    (typeof FORWARDED)[number]
  >),
  tool: (described) => remoteTool(described, currentClient),
  configure: (settings) => {
    configured = { ...configured, ...settings };
  },
  verifySignature,
};

/** The method of that name, of whichever client is meant when it is called. */
function forward(name: (typeof FORWARDED)[number]): (...given: never[]) => unknown {
  return (...given) => {
    const client = currentClient();
    return (client[name] as (...given: never[]) => unknown).apply(client, given);
  };
}

/** The client of the handler that runs, else the one of this process. */
function currentClient(): A2AClient {
  const ofHandler = currentScope()?.client;
  if (ofHandler) return ofHandler;
  const key = `${hubUrl(configured.baseUrl)} ${hubToken(configured.apiKey) ?? ''}`;
  if (ofProcess?.key !== key) ofProcess = { key, client: new A2AClient(configured) };
  return ofProcess.client;
}
