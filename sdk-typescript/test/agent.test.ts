/** Agents that connect to a real hub: called, streamed, asked, cancelled, failing, calling others. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import {
  a2a,
  A2AClient,
  Agent,
  AgentError,
  AgentTimeout,
  CallCancelled,
  File,
  InputRefused,
  InputRequired,
  NotAuthenticated,
  RunResult,
  SkillNotFound,
  Text,
  tool,
  type Context,
  type StandardSchema,
} from '@agentplatform/sdk';
import { client, connected, fresh, Gate, until } from './support.js';

const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

test('an agent without an address is called through its hub', async (t) => {
  const agent = await connected(t, (made) =>
    made.skill(
      'forecast',
      { description: 'Weather for a city', input: CITY, tags: ['sky'], idempotent: true },
      ({ city }) => ({
        city,
        sky: 'clear',
      }),
    ),
  );
  const full = await client().callFull({ target: agent.id, skill: 'forecast', input: { city: 'Oslo' } });
  assert.deepEqual(full.result, { city: 'Oslo', sky: 'clear' });
  assert.match(full.id, /^a2a_call_/);
  assert.ok(full.trace['trace_id']);
  assert.equal(typeof full.timing['duration_ms'], 'number');
  const card = await client().card(agent.id);
  assert.deepEqual(card['skills'], agent.card()['skills']);
  assert.equal((await client().card(agent.id, 'a2a-1.0'))['name'], 'Test');
  const found = [];
  for await (const each of client().discover({ skill: 'forecast' })) found.push(each);
  const one = found.find(({ id }) => id === agent.id);
  assert.equal(one?.status, 'active');
  assert.ok((one?.rating ?? 0) > 0 && one?.skills.includes('forecast'));
});

test('what does not fit the schema is refused before the agent is called', async (t) => {
  const agent = await connected(t, (made) => made.skill('forecast', { input: CITY }, () => assert.fail('it ran')));
  await assert.rejects(client().call({ target: agent.id, skill: 'forecast' }), (error: InputRefused) => {
    assert.ok(error instanceof InputRefused);
    assert.deepEqual([error.code, error.retryable], ['VALIDATION_ERROR', false]);
    assert.match(error.message, /error\.details/);
    return true;
  });
  await assert.rejects(client().call({ target: agent.id, skill: 'nope' }), SkillNotFound);
});

test('what it says is streamed as it says it', async (t) => {
  const read = new Gate();
  const agent = await connected(t, (made) =>
    made.skill('tell', {}, async function* (_, ctx) {
      yield 'one ';
      await ctx.progress(0.5, 'half way');
      await read.opened;
      yield 'two';
    }),
  );
  const told: string[] = [];
  for await (const event of client().stream({ target: agent.id, skill: 'tell' })) {
    if (event.type === 'chunk') told.push(event.content);
    if (event.type === 'progress' && event.progress === 0.5) read.open();
    if (event.type === 'complete') assert.equal(event.full.text, 'one two');
  }
  assert.equal(told.join(''), 'one two');
});

test('a value at the end of a stream is the result, yielded or returned', async (t) => {
  const agent = await connected(t, (made) => {
    made.skill('yields', {}, async function* () {
      yield 'thinking';
      yield { answer: 42 };
    });
    made.skill('returns', {}, async function* () {
      yield 'thinking';
      return { answer: 42 };
    });
  });
  for (const skill of ['yields', 'returns']) {
    assert.deepEqual(await client().call({ target: agent.id, skill }), { answer: 42 });
  }
});

test('it asks, and goes on with what it was answered', async (t) => {
  const began: number[] = [];
  const agent = await connected(t, (made) =>
    made.skill('report', {}, async (_, ctx) => {
      began.push(ctx.attempt);
      const words = await ctx.ask('How many words?', { type: 'integer' });
      const title = await ctx.ask('Which title?');
      return `${String(words)} words: ${title}`;
    }),
  );
  const asked = async (work: Promise<unknown>): Promise<InputRequired> => {
    const error = await work.then(
      () => assert.fail('it did not ask'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof InputRequired);
    return error;
  };
  const first = await asked(client().call({ target: agent.id, skill: 'report' }));
  assert.equal(first.question, 'How many words?');
  const again = await asked(first.handle.send('many'));
  assert.match(again.question, /does not fit/);
  const second = await asked(again.handle.send('12'));
  assert.equal((await second.handle.send('Tides')).text, '12 words: Tides');
  assert.deepEqual(began, [1], 'it was not begun anew');
});

test('a cancelled call is cancelled in its handler', async (t) => {
  const begun = new Gate();
  const ended = new Gate();
  const agent = await connected(t, (made) =>
    made.skill('wait', {}, async (_, ctx) => {
      begun.open();
      await sleep(60_000, undefined, { signal: ctx.signal }).finally(() => ended.open());
    }),
  );
  const handle = await client().submit({ target: agent.id, skill: 'wait' });
  await begun.opened;
  assert.equal((await handle.cancel('enough')).status, 'cancelled');
  await ended.opened;
  await assert.rejects(handle.result(), CallCancelled);
});

test('a handler that does not look is ended by the first thing it says after a cancel', async (t) => {
  const begun = new Gate();
  let said: unknown;
  const agent = await connected(t, (made) =>
    made.skill('talk', {}, async (_, ctx) => {
      begun.open();
      try {
        for (;;) {
          await ctx.stream('. ');
          await sleep(5);
        }
      } catch (error) {
        said = error;
        throw error;
      }
    }),
  );
  const handle = await client().submit({ target: agent.id, skill: 'talk' });
  await begun.opened;
  await handle.cancel();
  await until(() => said instanceof CallCancelled, 'the handler ended');
});

test('a call has its time, and the handler is told when that is over', async (t) => {
  const ended = new Gate();
  let left: number | undefined;
  const agent = await connected(t, (made) =>
    made.skill('wait', {}, async (_, ctx) => {
      left = ctx.remainingS;
      await sleep(60_000, undefined, { signal: ctx.signal }).finally(() => ended.open());
    }),
  );
  await assert.rejects(client().call({ target: agent.id, skill: 'wait', timeoutMs: 200 }), AgentTimeout);
  await ended.opened;
  assert.ok(left !== undefined && left > 0 && left <= 0.2);
});

test('errors keep their code, and of others only the name is told', async (t) => {
  const lines: string[] = [];
  class Broken extends Error {}
  const agent = await connected(
    t,
    (made) => {
      made.skill('own', {}, () => {
        throw new AgentError('Somebody else has it.', { retryable: true, details: { shelf: 3 } });
      });
      made.skill('other', {}, () => {
        throw new Broken('the password is hunter2');
      });
      made.skill('refuses', {}, (_, ctx) => ctx.refuse('not today'));
    },
    { log: (level, message) => lines.push(`${level} ${message}`) },
  );
  const failing = async (skill: string): Promise<AgentError> => {
    const error = await client()
      .call({ target: agent.id, skill })
      .catch((reason: unknown) => reason);
    assert.ok(error instanceof AgentError);
    return error;
  };
  const own = await failing('own');
  assert.deepEqual([own.sentence, own.retryable, own.details['shelf']], ['Somebody else has it.', true, 3]);
  assert.ok(own.callId?.startsWith('a2a_call_') && own.traceId);
  const other = await failing('other');
  assert.equal(other.sentence, 'other failed: Broken');
  assert.deepEqual(lines, ['error other failed']);
  assert.match((await failing('refuses')).sentence, /not today/);
});

test('files, artifacts, usage and log lines reach the hub', async (t) => {
  const agent = await connected(t, (made) => {
    made.skill(
      'file',
      {},
      () => new File({ bytes: new Uint8Array([0, 255, 7]), name: 'a.bin', mimeType: 'application/x-thing' }),
    );
    made.skill('large', {}, async (_, ctx) => {
      ctx.usage({ inputTokens: 3, model: 'small' });
      ctx.usage({ inputTokens: 4, costUsd: 0.5 });
      ctx.log.info('a line', { number: 1 });
      await ctx.artifact('x'.repeat(700_000), { name: 'essay' });
    });
  });
  const [artifact] = (await client().callFull({ target: agent.id, skill: 'file' })).artifacts;
  const [part] = artifact?.parts ?? [];
  assert.ok(part instanceof File);
  assert.deepEqual([...(part.bytes ?? [])], [0, 255, 7]);
  assert.equal(part.mimeType, 'application/x-thing');
  const large = await client().callFull({ target: agent.id, skill: 'large' });
  assert.equal(large.text.length, 700_000);
  assert.equal(large.usage['cost_usd'], 0.5);
});

test('messages that name no skill are answered, and remembered', async (t) => {
  const agent = await connected(t, (made) =>
    made.onMessage((message, ctx) => `${message.text}? We spoke ${ctx.history.length} times. ${ctx.caller.kind}`),
  );
  assert.equal(agent.card()['default_skill'], 'chat');
  const conversationId = fresh('conv');
  const said = { target: agent.id, message: 'Hello', conversationId };
  assert.match((await client().callFull(said)).text, /^Hello\? We spoke 0 times/);
  assert.doesNotMatch((await client().callFull({ ...said, message: new Text('Again') })).text, /spoke 0 times/);
});

test('a nested call passes on the trace, the conversation, the parent and the deadline', async (t) => {
  const sent: { body: Record<string, Record<string, unknown>>; headers: Headers }[] = [];
  const elsewhere = new A2AClient({
    fetch: async (request) => {
      sent.push({ body: (await request.json()) as Record<string, Record<string, unknown>>, headers: request.headers });
      return Response.json({ status: 'completed', result: {} });
    },
  });
  let inner: Context | undefined;
  const below = await connected(t, (made) => made.skill('below', {}, (_, ctx) => ((inner = ctx), 'done')));
  let outer: Context | undefined;
  const above = await connected(t, (made) =>
    made.skill('above', {}, async (_, ctx) => {
      outer = ctx;
      await Promise.all([1, 2].map(async () => await elsewhere.call({ target: below.id, skill: 'below' })));
      return await a2a.call({ target: below.id, skill: 'below' });
    }),
  );
  const call = { target: above.id, skill: 'above', timeoutMs: 5000, conversationId: fresh('conv') };
  const full = await client().callFull({ ...call, metadata: { secret: 1 } });
  assert.equal(full.text, 'done');
  assert.equal(inner?.traceId, outer?.traceId);
  assert.deepEqual(inner?.metadata, {}, 'what was said to one target is not passed on');
  assert.equal(inner?.caller.id, above.id, 'it was called by the agent itself');
  assert.ok(inner?.deadline && outer?.deadline);
  for (const { body, headers } of sent) {
    assert.deepEqual(body['context'], { conversation_id: call.conversationId, parent_execution_id: outer?.callId });
    assert.equal(headers.get('x-trace-id'), outer?.traceId);
    const timeoutMs = Number(body['options']?.['timeout_ms']);
    assert.ok(timeoutMs > 3000 && timeoutMs <= 4950, String(timeoutMs));
  }
  assert.equal(sent.length, 2);
});

test('a handler without time makes no call', async (t) => {
  let error: unknown;
  const agent = await connected(t, (made) =>
    made.skill('late', {}, async (_, ctx) => {
      await sleep((ctx.remainingS ?? 0) * 1000 - 45);
      error = await ctx.call({ skill: 'anything' }).catch((reason: unknown) => reason);
    }),
  );
  // Whether it can still say so in the time it keeps is another matter.
  await client()
    .call({ target: agent.id, skill: 'late', timeoutMs: 300 })
    .catch(() => undefined);
  await until(() => error !== undefined, 'the handler went on');
  assert.ok(error instanceof AgentTimeout && error.details['reason'] === 'no_time_left');
});

test('a call that would come back to an agent that waits is refused', async (t) => {
  const id = fresh();
  await connected(t, (made) => made.skill('self', {}, async () => await a2a.call({ target: id, skill: 'self' })), {
    id,
  });
  await assert.rejects(client().call({ target: id, skill: 'self' }), (error: AgentError) => {
    assert.equal(error.details['reason'], 'call_loop');
    return true;
  });
});

test('a schema of a library is published, and what it reads is what the handler gets', async (t) => {
  const positive: StandardSchema<{ n: number }> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => {
        const { n } = value as { n: number };
        return n > 0 ? { value: { n: n * 10 } } : { issues: [{ message: 'must be positive', path: ['n'] }] };
      },
      jsonSchema: {
        input: () => ({ type: 'object', properties: { n: { type: 'number' } } }),
        output: () => ({ type: 'object' }),
      },
    },
  };
  const agent = await connected(t, (made) => made.skill('grow', { input: positive }, ({ n }) => ({ n: n + 1 })));
  assert.deepEqual(await client().call({ target: agent.id, skill: 'grow', input: { n: 2 } }), { n: 21 });
  await assert.rejects(client().call({ target: agent.id, skill: 'grow', input: { n: -2 } }), (error: InputRefused) => {
    assert.match(error.sentence, /n: must be positive/);
    return true;
  });
  const [skill] = (await client().card(agent.id))['skills'] as { input_schema: object }[];
  assert.deepEqual(skill?.input_schema, { type: 'object', properties: { n: { type: 'number' } } });
});

test('a model works on tasks with tools, its own and those of other agents', async (t) => {
  const search = await connected(t, (made) =>
    made.skill('search', { input: CITY }, ({ city }) => ({ found: `${String(city)} by the sea` })),
  );
  const requests: unknown[] = [];
  const local = tool<{ n: number }>({ name: 'double', description: 'Doubles' }, ({ n }) => n * 2);
  const remote = a2a.tool({ agentId: search.id, skill: 'search', name: 'look', description: 'Looks' });
  const agent = await connected(t, () => undefined, {
    instructions: 'Be short.',
    tools: [local, remote],
    model: async (request) => {
      requests.push(request);
      const last = request.messages.at(-1);
      if (last?.role !== 'user')
        return {
          text: `so: ${request.messages
            .slice(-2)
            .map(({ text }) => text)
            .join(' ')}`,
          usage: { inputTokens: 5 },
        };
      return {
        toolCalls: [
          { name: 'double', arguments: { n: 4 } },
          { name: 'look', arguments: { city: 'Oslo' } },
        ],
        usage: { inputTokens: 2 },
      };
    },
  });
  const direct = await agent.run('Go');
  assert.ok(direct instanceof RunResult);
  assert.equal(direct.content, 'so: 8 {"found":"Oslo by the sea"}');
  assert.equal(direct.usage.inputTokens, 7);
  const [first] = requests as { tools: { name: string; inputSchema: object }[] }[];
  assert.deepEqual(
    first?.tools.map(({ name, inputSchema }) => [name, inputSchema]),
    [
      ['double', { type: 'object' }],
      ['look', CITY],
    ],
  );
  const through = await client().callFull({ target: agent.id, message: 'Go' });
  assert.equal(through.text, direct.content);
  assert.equal(through.usage['input_tokens'], 7);
});

test('an agent without a model says so', async () => {
  await assert.rejects(new Agent({ name: 'Guide' }).run('Go'), /NoModel|has no model; pass model/);
});

test('an agent whose hub refuses it is told why', async () => {
  const agent = new Agent({ name: 'Refused', id: fresh(), apiKey: 'ap_wrong' });
  agent.skill('ping', {}, () => 'pong');
  await assert.rejects(agent.start(), NotAuthenticated);
});

test('no more calls than its concurrency at once, and those that run end before it stops', async () => {
  const agent = new Agent({ name: 'Two', id: fresh(), concurrency: 2 });
  let running = 0;
  let most = 0;
  agent.skill('work', {}, async () => {
    most = Math.max(most, ++running);
    await sleep(20);
    running -= 1;
    return 'done';
  });
  await agent.connect();
  const calls = await Promise.all(
    Array.from({ length: 6 }, () => client().callFull({ target: agent.id, skill: 'work' })),
  );
  assert.deepEqual(
    calls.map(({ text }) => text),
    Array(6).fill('done'),
  );
  assert.equal(most, 2);
  const handle = await client().submit({ target: agent.id, skill: 'work' });
  await until(() => running === 1, 'it runs');
  await agent.stop();
  assert.equal((await handle.result()).text, 'done');
  await agent.connect();
  await assert.rejects(agent.connect(), /connected already/);
  await agent.stop();
});

test('a second hub has a client of its own', () => {
  assert.equal(new A2AClient({ baseUrl: 'https://hub.example/' }).url, 'https://hub.example');
  assert.throws(() => new A2AClient({ baseUrl: 'nonsense' }), /no URL of a hub/);
});
