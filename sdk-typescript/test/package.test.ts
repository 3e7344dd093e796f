/** What the package promises: no dependencies, one version, both kinds of modules, nothing of Node by name. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import * as sdk from '@agentplatform/sdk';
import { VERSION } from '#esm/version.js';

const root = new URL('../../', import.meta.url);
const about = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Record<string, object | string>;

const NAMES = [
  'A2AClient',
  'Agent',
  'AgentError',
  'AgentNotFound',
  'AgentTimeout',
  'AgentUnavailable',
  'Artifact',
  'BadRequest',
  'BadSignature',
  'CallCancelled',
  'CallHandle',
  'CallLoop',
  'CallResult',
  'CircuitOpen',
  'Conflict',
  'Context',
  'Data',
  'DragomanError',
  'File',
  'HubUnreachable',
  'IdempotencyConflict',
  'InputRefused',
  'InputRequired',
  'Interrupted',
  'Message',
  'NoModel',
  'NotAuthenticated',
  'NotAuthorized',
  'NotFound',
  'Overloaded',
  'RateLimited',
  'RunResult',
  'SkillNotFound',
  'TaskNotFound',
  'Text',
  'TooLarge',
  'a2a',
  'stepResult',
  'tool',
  'verifySignature',
];

test('it exports what it says, and nothing else', () => {
  assert.deepEqual(Object.keys(sdk).sort(), NAMES);
});

test('it depends on nothing, and says its version', () => {
  assert.equal('dependencies' in about || 'peerDependencies' in about, false);
  assert.deepEqual(Object.keys(about['devDependencies'] as object).sort(), ['@types/node', 'typescript']);
  assert.equal(about['version'], VERSION);
});

test('it may be required, too', () => {
  const required = createRequire(import.meta.url)('@agentplatform/sdk') as typeof sdk;
  assert.deepEqual(Object.keys(required).sort(), NAMES);
  assert.equal(new required.Agent({ name: 'Old School' }).id, 'agt_old_school');
});

test('nothing of Node is imported by name', () => {
  const files = readdirSync(new URL('dist/esm/', root), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.js'));
  assert.ok(files.length > 40);
  for (const file of files) {
    const text = readFileSync(new URL(`dist/esm/${file}`, root), 'utf8');
    assert.doesNotMatch(text, /(?:from|import|require)\s*\(?\s*['"](?!\.)/, file);
  }
});
