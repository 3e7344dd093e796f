/** The caller's side: settings, retries, streams that are taken up again, handles, errors, signatures. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  a2a,
  A2AClient,
  AgentNotFound,
  BadSignature,
  Conflict,
  HubUnreachable,
  IdempotencyConflict,
  NotAuthenticated,
  Overloaded,
  RateLimited,
  stepResult,
  TaskNotFound,
  verifySignature,
  type Fetch,
  type StreamEvent,
} from '@agentplatform/sdk';
import { SseParser } from '#esm/client/sse.js';
import { client, connected, fresh, Gate, say, serving, sse } from './support.js';

const DONE = { id: 'a2a_call_1', call_id: 'a2a_call_1', status: 'completed', result: { ok: true } };

/** What stands for a network: answers one after the other, and notes what was asked. */
function answering(...answers: (Response | Error)[]): { fetch: Fetch; asked: Request[] } {
  const asked: Request[] = [];
  const fetch: Fetch = (request) => {
    asked.push(request);
    const answer = answers.shift();
    return answer instanceof Response
      ? Promise.resolve(answer)
      : Promise.reject(answer ?? new Error('nothing is left'));
  };
  return { fetch, asked };
}

function lost(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
}

test('an agent that nobody knows is an error that says what to do', async () => {
  const error = await client()
    .call({ target: 'agt_nobody', skill: 'x' })
    .catch((reason: unknown) => reason);
  assert.ok(error instanceof AgentNotFound);
  assert.deepEqual([error.code, error.retryable], ['AGENT_NOT_FOUND', false]);
  assert.match(error.message, /a2a\.discover\(\)/);
  await assert.rejects(client().handle('a2a_call_nobody').status(), TaskNotFound);
  await assert.rejects(new A2AClient({ apiKey: 'ap_wrong' }).call({ skill: 'x' }), NotAuthenticated);
});

test('the hub is what was configured, else the environment says', async (t) => {
  const asked: string[] = [];
  const url = await serving(t, ({ headers }, reply) => {
    asked.push(headers.authorization ?? '');
    say(reply, DONE);
  });
  t.after(() => a2a.configure({ baseUrl: undefined, apiKey: undefined }));
  a2a.configure({ baseUrl: url, apiKey: 'mine' });
  assert.deepEqual(await a2a.call({ skill: 'x' }), { ok: true });
  assert.deepEqual(asked, ['Bearer mine']);
});

describe('retries', { concurrency: true }, () => {
  for (const mishap of [lost('ECONNREFUSED'), lost('ECONNRESET'), new Response('<html>', { status: 502 })]) {
    const name = mishap instanceof Response ? String(mishap.status) : String((mishap.cause as Error).message);
    test(`what never reached the hub is tried again under the same id: ${name}`, async () => {
      const { fetch, asked } = answering(mishap, Response.json(DONE));
      const began = performance.now();
      assert.deepEqual(await new A2AClient({ fetch }).call({ skill: 'x' }), { ok: true });
      const took = performance.now() - began;
      assert.ok(took >= 795, `waited ${took} ms`);
      const ids = asked.map((request) => request.headers.get('x-request-id'));
      assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);
      assert.match(ids[0] ?? '', /^req_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
    });
  }

  test('what may have arrived is not repeated where it must not be', async () => {
    for (const [more, tries] of [
      [{ delivery: 'at_most_once' }, 1],
      [{ delivery: 'at_most_once', idempotencyKey: 'k' }, 2],
    ] as const) {
      const { fetch, asked } = answering(lost('ECONNRESET'), Response.json(DONE));
      const call = new A2AClient({ fetch }).call({ skill: 'x', ...more });
      if (tries === 1) await assert.rejects(call, (error: HubUnreachable) => error.sent && error.reason === 'reset');
      else await call;
      assert.equal(asked.length, tries);
    }
  });

  test("the hub's own refusals are waited for, an agent's are not", async () => {
    const refusal = (code: string, reason: string, trace?: object, retryAfter = '1'): Response =>
      Response.json(
        { status: 'failed', error: { code, message: 'no', details: { reason } }, trace },
        { status: 503, headers: { 'retry-after': retryAfter } },
      );
    const overloaded = answering(refusal('AGENT_UNAVAILABLE', 'overloaded'), Response.json(DONE));
    await new A2AClient({ fetch: overloaded.fetch }).call({ skill: 'x' });
    assert.equal(overloaded.asked.length, 2);
    const never = answering(refusal('AGENT_UNAVAILABLE', 'overloaded', undefined, '600'));
    await assert.rejects(new A2AClient({ fetch: never.fetch }).call({ skill: 'x' }), Overloaded);
    const limited = Response.json(
      { status: 'failed', error: { code: 'RATE_LIMITED', message: 'no' }, trace: { trace_id: 't' } },
      { status: 429 },
    );
    const agents = answering(limited);
    await assert.rejects(new A2AClient({ fetch: agents.fetch }).call({ skill: 'x' }), (error: RateLimited) => {
      assert.deepEqual([error.retryAfterS, error.retryable, error.traceId], [1, true, 't']);
      return error instanceof RateLimited;
    });
    const off = answering(lost('ECONNREFUSED'));
    await assert.rejects(
      new A2AClient({ fetch: off.fetch, retries: 0 }).call({ skill: 'x' }),
      /No hub answers at .*dragoman dev/,
    );
  });

  test('a runtime that gives up waiting for a long call asks again at once', async () => {
    const slow = Array.from({ length: 5 }, () => lost('UND_ERR_HEADERS_TIMEOUT'));
    const { fetch, asked } = answering(...slow, Response.json(DONE));
    const began = performance.now();
    assert.deepEqual(await new A2AClient({ fetch }).call({ skill: 'x', timeoutMs: 3_600_000 }), { ok: true });
    assert.equal(new Set(asked.map((request) => request.headers.get('x-request-id'))).size, 1);
    assert.ok(performance.now() - began < 5000);
  });
});

test('a stream that breaks off is taken up behind what arrived', async (t) => {
  const asked: string[] = [];
  const url = await serving(t, ({ method, path, headers }, reply) => {
    asked.push(`${method} ${path} ${String(headers['last-event-id'] ?? '')}`);
    reply.writeHead(200, { 'content-type': 'text/event-stream' });
    if (asked.length === 1) {
      reply.write(sse('start', { call_id: 'a2a_call_7' }, 1) + sse('chunk', { content: 'one ' }, 2));
      setTimeout(() => reply.destroy(), 20);
    } else if (asked.length === 2) reply.end();
    else
      reply.end(
        sse('chunk', { content: 'two' }, 3) + sse('complete', { status: 'completed', result: { text: 'one two' } }, 4),
      );
  });
  const events: StreamEvent[] = [];
  for await (const event of new A2AClient({ baseUrl: url }).stream({ skill: 'tell' })) events.push(event);
  assert.deepEqual(
    events.map(({ type, seq }) => [type, seq]),
    [
      ['start', 1],
      ['chunk', 2],
      ['chunk', 3],
      ['complete', 4],
    ],
  );
  const again = 'GET /v1/a2a/call/a2a_call_7/stream 2';
  assert.deepEqual(asked, ['POST /v1/a2a/call/stream ', again, again]);
});

test('a stream is ended by its signal, also after the memory was tidied up', { timeout: 10_000 }, async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const url = await serving(t, (_, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' }).write(sse('start', { call_id: 'a2a_call_7' }, 1));
  });
  const leaving = new AbortController();
  const read = async (): Promise<void> => {
    for await (const event of new A2AClient({ baseUrl: url }).stream({ skill: 'tell', signal: leaving.signal })) {
      assert.equal(event.type, 'start');
      setTimeout(() => {
        collect();
        setTimeout(() => leaving.abort(), 10);
      }, 10);
    }
  };
  await assert.rejects(read(), { name: 'AbortError' });
});

test('a call that nobody waits for is made once, and has a handle', async (t) => {
  const go = new Gate();
  let ran = 0;
  const agent = await connected(t, (made) =>
    made.skill('work', {}, async (_, ctx) => {
      ran += 1;
      await ctx.stream('half ');
      await go.opened;
      return await ctx.stream('done');
    }),
  );
  const idempotencyKey = fresh('key');
  const work = { target: agent.id, skill: 'work', input: { n: 1 }, idempotencyKey };
  const handle = await client().submit(work);
  assert.equal((await client().submit(work)).id, handle.id);
  await assert.rejects(client().submit({ ...work, input: { n: 2 } }), IdempotencyConflict);
  await assert.rejects(handle.result({ timeoutS: 0.05 }), { name: 'TimeoutError' });
  const words: string[] = [];
  for await (const event of handle.stream()) {
    if (event.type === 'chunk') words.push(event.content);
    go.open();
  }
  assert.equal(words.join(''), 'half done');
  assert.equal((await handle.result()).text, 'half done');
  assert.deepEqual([(await handle.status()).status, (await handle.status()).ended, ran], ['completed', true, 1]);
  await assert.rejects(handle.cancel(), Conflict);
  assert.equal((await client().rate(handle.id, 5, 'quick'))['rating'], 5);
});

test('steps that follow a call are carried out by the hub', async (t) => {
  const agent = await connected(t, (made) => {
    made.skill('first', {}, () => ({ results: ['a', 'b'] }));
    made.skill('second', {}, ({ all, one }) => ({ all, one }));
  });
  const then = [
    {
      skill: 'second',
      agent: agent.id,
      input: { all: stepResult('0', '/results'), one: stepResult('-', '/results/0') },
    },
  ];
  const handle = await client().submit({ target: agent.id, skill: 'first', then });
  assert.deepEqual((await handle.result()).result, { all: ['a', 'b'], one: 'a' });
});

test('agents are found page after page, and no more of them than wanted', async (t) => {
  const url = await serving(t, ({ path }, reply) => {
    const query = new URL(path, 'http://hub').searchParams;
    const page = Number(query.get('cursor') ?? 0);
    assert.deepEqual([query.get('skill'), query.get('min_rating'), query.getAll('tag')], ['x', '4', ['a', 'b']]);
    const agents = Array.from({ length: 2 }, (_, place) => ({ id: `agt_${page}_${place}`, response_time_p95_ms: 7 }));
    say(reply, { agents, next_cursor: page < 5 ? String(page + 1) : null });
  });
  const found: string[] = [];
  for await (const { id, responseTimeP95Ms } of new A2AClient({ baseUrl: url }).discover({
    skill: 'x',
    minRating: 4,
    tag: ['a', 'b'],
    limit: 5,
  })) {
    found.push(`${id} ${responseTimeP95Ms}`);
  }
  assert.deepEqual(found, ['agt_0_0 7', 'agt_0_1 7', 'agt_1_0 7', 'agt_1_1 7', 'agt_2_0 7']);
});

test('a platform agent is registered by its card', async () => {
  const id = fresh();
  const card = {
    id,
    name: 'Far',
    description: 'Far away',
    version: '1.0.0',
    skills: [{ name: 'far' }],
    endpoint: 'http://127.0.0.1:18001/',
  };
  assert.equal((await client().register(card, { tags: ['far'] }))['id'], id);
  assert.equal((await client().card(`${id}@1.0.0`))['name'], 'Far');
});

test('events are read from text that is cut anywhere', () => {
  const text = ': hello\r\n\r\nid: 1\r\nevent: chunk\r\ndata: {"content":\r\ndata: "ü"}\r\n\r\ndata: x\n\nretry: 5\n\n';
  for (let size = 1; size < 9; size++) {
    const parser = new SseParser(1000);
    const events = text.match(new RegExp(`[^]{1,${size}}`, 'g'))?.flatMap((piece) => parser.feed(piece));
    assert.deepEqual(events, [
      { id: '1', name: 'chunk', data: '{"content":\n"ü"}' },
      { id: '', name: 'message', data: 'x' },
    ]);
  }
  assert.throws(() => new SseParser(10).feed('data: more than ten'), RangeError);
});

test('callbacks are checked by every signature on them, and by their time', async () => {
  const secret = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
  const body = JSON.stringify({ call_id: 'a2a_call_1', status: 'completed' });
  const signed = (key: string, at = Math.floor(Date.now() / 1000)): Record<string, string> => {
    const webhook = createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
      .update(`cb_1.${at}.${body}`)
      .digest('base64');
    return {
      'X-Signature': `sha256=${createHmac('sha256', key).update(body).digest('hex')}`,
      'X-Timestamp': String(at),
      'webhook-id': 'cb_1',
      'webhook-timestamp': String(at),
      'webhook-signature': `v1,AAAA v1,${webhook}`,
    };
  };
  const only = (headers: Record<string, string>, ...names: string[]): Record<string, string> =>
    Object.fromEntries(
      Object.entries(headers).filter(([name]) => names.some((each) => name.toLowerCase().startsWith(each))),
    );
  const headers = signed(secret);
  const refused = async (
    sent: Record<string, string> | Headers,
    key: string | string[] = secret,
    text = body,
  ): Promise<unknown> => {
    const error = await verifySignature(text, sent, key).catch((reason: unknown) => reason);
    assert.ok(error instanceof BadSignature, 'it was taken');
    return error.details['reason'];
  };
  assert.equal((await verifySignature(body, headers, secret))['status'], 'completed');
  assert.equal(
    (await verifySignature(Buffer.from(body), new Headers(headers), [`${secret.slice(0, -4)}AAA=`, secret]))['call_id'],
    'a2a_call_1',
  );
  await verifySignature(body, only(headers, 'x-'), secret);
  await verifySignature(body, only(headers, 'webhook-'), secret);
  assert.equal(await refused({}), 'signature_missing');
  assert.equal(await refused(headers, secret, `${body} `), 'signature_invalid');
  assert.equal(await refused(headers, [`${secret.slice(0, -4)}AAA=`]), 'signature_invalid');
  assert.equal(await refused({ ...headers, 'X-Signature': 'sha256=00' }), 'signature_invalid', 'both have to be right');
  assert.equal(await refused({ ...headers, 'webhook-id': 'cb_2' }), 'signature_invalid');
  const now = Math.floor(Date.now() / 1000);
  for (const at of [now - 310, now + 310]) {
    assert.equal(await refused(only(signed(secret, at), 'webhook-')), 'timestamp_out_of_range');
    assert.equal(await refused(only(signed(secret, at), 'x-')), 'timestamp_out_of_range');
  }
});
