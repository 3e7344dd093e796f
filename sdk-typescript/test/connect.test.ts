/** The protocol of agents that connect: sessions, attempts, what is resent, what is remembered. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Context } from '@agentplatform/sdk';
import { EndedCalls } from '#esm/connect/ended.js';
import { pieces } from '#esm/connect/pieces.js';
import { said, Unacked } from '#esm/connect/unacked.js';
import { Gate, say, until } from './support.js';
import { ScriptedHub, sessionOver } from './scripted-hub.js';

test('what the hub has not acknowledged is sent again, under the same number', async (t) => {
  const hub = await ScriptedHub.start(t);
  await hub.agent(t, (agent) => agent.skill('echo', {}, () => 'done'));
  hub.answers.push(
    (reply) => reply.destroy(),
    (reply) => say(reply, {}, 503),
  );
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'complete');
  await until(() => hub.events('c1').filter((one) => one === '1 start').length === 3, 'start was told three times');
  assert.equal(hub.events('c1').at(-1), '2 complete');
});

test('a gap is filled from where the hub expects it', async (t) => {
  const hub = await ScriptedHub.start(t);
  await hub.agent(t, (agent) => agent.skill('echo', {}, () => 'done'));
  hub.answers.push((reply) => say(reply, { expected: 1 }, 409));
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'complete');
  assert.equal(hub.events('c1').filter((one) => one === '1 start').length, 2);
});

test('a call that comes again under a later attempt goes on, and counts what is not on disk from 1', async (t) => {
  const hub = await ScriptedHub.start(t);
  const go = new Gate();
  let runs = 0;
  await hub.agent(t, (agent) =>
    agent.skill('tell', {}, async function* () {
      runs += 1;
      yield 'one';
      await go.opened;
      yield 'two';
    }),
  );
  hub.offer('c1', 'tell');
  await hub.heard('c1', 'chunk');
  hub.offer('c1', 'tell', { attempt: 2, heard: { attempt: 1, n: 2 } });
  await until(() => JSON.stringify(hub.hellos.at(-1)?.['running']).includes('"attempt":2'), 'it has gone on');
  go.open();
  await hub.heard('c1', 'complete', 2);
  assert.deepEqual(hub.events('c1', 2), ['1 chunk', '2 complete']);
  assert.equal(runs, 1);
});

test('a stale attempt waits for the later one that is on its way', async (t) => {
  const hub = await ScriptedHub.start(t);
  await hub.agent(t, (agent) => agent.skill('echo', {}, () => 'done'));
  hub.answers.push((reply) => say(reply, { error: { code: 'STALE_ATTEMPT', message: 'no' } }, 410));
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'start');
  hub.offer('c1', 'echo', { attempt: 2 });
  await hub.heard('c1', 'complete', 2);
  assert.deepEqual(hub.events('c1', 2), ['1 start', '2 complete']);
});

test('a call that ended here is answered from memory, and not run again', async (t) => {
  const hub = await ScriptedHub.start(t);
  let runs = 0;
  await hub.agent(t, (agent) => agent.skill('echo', {}, () => ({ runs: ++runs })));
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'complete');
  hub.offer('c1', 'echo', { attempt: 2 });
  await hub.heard('c1', 'complete', 2);
  assert.deepEqual(hub.events('c1', 2), ['1 complete']);
  assert.equal(runs, 1);
});

test('a session that is over is followed by another, with the calls that run; those it drops are cancelled', async (t) => {
  const hub = await ScriptedHub.start(t);
  const go = new Gate();
  const cancelled: string[] = [];
  await hub.agent(t, (agent) =>
    agent.skill('hold', {}, async (_, ctx) => {
      await Promise.race([
        go.opened,
        sleep(60_000, undefined, { signal: ctx.signal, ref: false }).catch(() => cancelled.push(ctx.callId)),
      ]);
      return ctx.callId;
    }),
  );
  hub.offer('kept', 'hold');
  hub.offer('dropped', 'hold');
  await hub.heard('kept', 'start');
  await hub.heard('dropped', 'start');
  hub.opening = { keep: ['kept'], drop: ['dropped'] };
  hub.streamAnswers.push(sessionOver);
  hub.cut();
  await hub.listened();
  const opened = hub.hellos.filter((hello) => !('session_id' in hello));
  assert.equal(opened.length, 2);
  assert.deepEqual(opened[1]?.['running'], [
    { call_id: 'kept', attempt: 1, n: 1 },
    { call_id: 'dropped', attempt: 1, n: 1 },
  ]);
  await until(() => cancelled.includes('dropped'), 'the dropped one was cancelled');
  go.open();
  await hub.heard('kept', 'complete');
  assert.equal(hub.told.at(-1)?.session, 'ses_2');
  assert.deepEqual(cancelled, ['dropped']);
});

test('a stream that breaks off goes on behind the last frame, and a frame that comes twice is taken once', async (t) => {
  const hub = await ScriptedHub.start(t);
  const ran: string[] = [];
  await hub.agent(t, (agent) => agent.skill('echo', {}, (_, ctx) => void ran.push(ctx.callId)));
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'complete');
  hub.cut();
  await hub.listened();
  assert.deepEqual(hub.streams, ['', '1']);
  hub.send('call', { call_id: 'c1', attempt: 5, skill: 'echo' }, 1);
  hub.offer('c2', 'echo');
  await hub.heard('c2', 'complete');
  assert.deepEqual([ran, hub.events('c1', 5)], [['c1', 'c2'], []]);
  await until(() => hub.hellos.some((hello) => hello['received'] === 2), 'a heartbeat says what was received');
});

test('what is beyond its capacity is handed back, and so is an answer to a call that it does not have', async (t) => {
  const hub = await ScriptedHub.start(t);
  const go = new Gate();
  const agent = await hub.agent(t, (made) => made.skill('hold', {}, async () => await go.opened), 1);
  hub.offer('c1', 'hold');
  hub.offer('c2', 'hold');
  await hub.heard('c2', 'released');
  hub.send('input', { call_id: 'c3', attempt: 4, ask: 0, message: { role: 'user', parts: [{ text: 'x' }] } });
  await hub.heard('c3', 'released', 4);
  const stopping = agent.stop();
  await until(() => hub.hellos.at(-1)?.['capacity'] === 0, 'the hub was told');
  hub.offer('c4', 'hold');
  await hub.heard('c4', 'released');
  go.open();
  await stopping;
  assert.deepEqual(hub.events('c1'), ['1 start', '2 complete']);
  assert.equal(hub.left, 1);
});

test('an answer comes under a new attempt, and what was answered before is not asked again', async (t) => {
  const hub = await ScriptedHub.start(t);
  await hub.agent(t, (agent) =>
    agent.skill(
      'ask',
      {},
      async (_, ctx) => `${await ctx.ask('first?')}, ${await ctx.ask('second?')}, ${await ctx.ask('third?')}`,
    ),
  );
  const message = (text: string): object => ({ role: 'user', parts: [{ text }] });
  hub.offer('c1', 'ask', { answers: [message('one')] });
  await hub.heard('c1', 'ask');
  assert.deepEqual(hub.told.at(-1)?.events.at(-1)?.data, { ask: 1, prompt: 'second?' });
  hub.send('input', { call_id: 'c1', attempt: 2, ask: 1, message: message('two') });
  await hub.heard('c1', 'ask', 2);
  hub.send('input', { call_id: 'c1', attempt: 3, ask: 2, message: message('three') });
  await hub.heard('c1', 'complete', 3);
  assert.equal(hub.told.at(-1)?.events.at(-1)?.data['result'], 'one, two, three');
});

test('what the hub will never take is told as the failure of the call', async (t) => {
  const hub = await ScriptedHub.start(t);
  await hub.agent(t, (agent) => agent.skill('echo', {}, () => 'done'));
  const refuse = (reply: Parameters<typeof say>[0]): void =>
    say(reply, { error: { code: 'VALIDATION_ERROR', message: 'no' } }, 400);
  hub.answers.push((reply) => say(reply, { acked: 1 }), refuse);
  hub.offer('c1', 'echo');
  await hub.heard('c1', 'error');
  assert.match(String(hub.told.at(-1)?.events[0]?.data['message']), /complete.*no/);
});

test('events count on within an attempt, and from 1 in the next', () => {
  const unacked = new Unacked(1);
  for (const place of [1, 2, 3, 4]) unacked.add(said('chunk', { place }));
  assert.deepEqual(
    unacked.batch(2)?.events.map(({ n }) => n),
    [1, 2],
  );
  assert.equal(unacked.ack({ attempt: 1, n: 2 }), true);
  assert.equal(unacked.ack({ attempt: 1, n: 2 }), false, 'no news');
  assert.deepEqual(
    unacked.batch()?.events.map(({ n }) => n),
    [3, 4],
  );
  unacked.adopt(2, { attempt: 1, n: 3 });
  assert.deepEqual(unacked.batch()?.events, [{ n: 1, event: 'chunk', data: { place: 4 } }]);
  unacked.add(said('complete', {}));
  unacked.add(said('chunk', { place: 5 }));
  assert.equal(unacked.ack({ attempt: 2, n: 2 }) && unacked.settled, true);
  unacked.adopt(3);
  assert.deepEqual(unacked.batch(), { attempt: 3, events: [{ n: 1, event: 'complete', data: {} }] });
  unacked.ack({ attempt: 3, n: 1 });
  assert.equal(unacked.expect(3, 2), true);
  assert.equal(unacked.expect(3, 1), false, 'the hub lost what it had acknowledged');
});

test('so many calls are remembered, the newest', () => {
  const ended = new EndedCalls(2);
  for (const id of ['a', 'b', 'c']) ended.add(id, new Unacked(1));
  assert.deepEqual(
    ['a', 'b', 'c'].map((id) => ended.find(id) !== undefined),
    [false, true, true],
  );
});

test('what is large goes in pieces that say the same', () => {
  const text = '😀é'.repeat(200_000);
  const cut = pieces('artifact', { id: 'a', name: 'n', parts: [{ text }, { data: 1 }], append: false, last: true });
  assert.ok(cut.length > 2);
  assert.equal(
    cut
      .flatMap(({ parts }) => parts as { text?: string }[])
      .map((part) => part.text ?? '')
      .join(''),
    text,
  );
  assert.deepEqual(
    cut.map(({ append }) => append),
    cut.map((_, place) => place > 0),
  );
  assert.deepEqual(
    cut.map(({ last }) => last),
    cut.map((_, place) => place === cut.length - 1),
  );
  assert.ok(cut.every((piece) => JSON.stringify(piece).length < 700_000));
});

test('a skill has its own time, and a hub that says nothing is not waited for', async (t) => {
  const hub = await ScriptedHub.start(t);
  const wait = async (_: object, ctx: Context): Promise<unknown> =>
    await sleep(60_000, undefined, { signal: ctx.signal });
  await hub.agent(t, (agent) => agent.skill('short', { timeoutS: 0.02 }, wait).skill('long', {}, wait));
  hub.offer('c1', 'short');
  hub.offer('c2', 'long', { options: { timeout_ms: 20 } });
  for (const callId of ['c1', 'c2']) {
    await hub.heard(callId, 'error');
    const last = hub.told
      .filter((told) => told.callId === callId)
      .at(-1)
      ?.events.at(-1)?.data;
    assert.deepEqual([last?.['code'], last?.['details']], ['AGENT_TIMEOUT', { timeout_ms: 20 }]);
  }
});
