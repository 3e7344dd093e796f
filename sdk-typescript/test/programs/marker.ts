/**
 * An agent in a process of its own, which can be killed and started again: `node marker.js FILE CONCURRENCY`.
 *
 * What its handlers begin and end is a line of the file: `begin`, process, call. Says `ready` when it is connected.
 */
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { a2a, Agent, AgentError, type Context, type Message } from '@agentplatform/sdk';

const [, , marks = '', concurrency = '10'] = process.argv;
const agent = new Agent({
  name: 'TS Marker',
  concurrency: Number(concurrency),
  log: (level, message, fields) => {
    if (message.includes('is connected to')) console.log('ready');
    console.error(level, message, fields);
  },
});

function mark(what: string, ctx: Context): void {
  appendFileSync(marks, `${what} ${process.pid} ${ctx.callId} ${ctx.attempt}\n`);
}

async function untilThere(file: string, ctx: Context): Promise<void> {
  while (!existsSync(file)) await sleep(10, undefined, { signal: ctx.signal });
}

agent.skill<{ to: number; hold_at: number; release: string }>(
  'count',
  { description: 'Counts, and holds in the midst until a file is there', idempotent: true },
  async function* ({ to, hold_at, release }, ctx) {
    mark('begin', ctx);
    for (let number = 0; number < to; number++) {
      if (number === hold_at) {
        await ctx.progress(0.5, 'holds');
        await untilThere(release, ctx);
      }
      yield `${number} `;
    }
    mark('end', ctx);
  },
);

agent.skill('question', { description: 'Asks twice' }, async (_, ctx) => {
  mark('begin', ctx);
  const first = await ctx.ask('What?');
  const second = await ctx.ask('What else?');
  return `${first} and ${second}`;
});

agent.skill('wait', { description: 'Waits for ever' }, async (_, ctx) => {
  mark('begin', ctx);
  try {
    await sleep(3_600_000, undefined, { signal: ctx.signal });
  } finally {
    mark('end', ctx);
  }
});

agent.skill<{ target: string; skill: string; input: object }>('relay', {}, async ({ target, skill, input }, ctx) => {
  ctx.log.info('relaying', { target });
  return await a2a.call({ target, skill, input });
});

// What a message says is what is done, as by the agents of the tests of all dialects.
async function converse(message: Message, ctx: Context): Promise<unknown> {
  mark('begin', ctx);
  switch (message.text) {
    case 'fail':
      throw new AgentError('it broke');
    case 'slow':
      return await sleep(3_600_000, undefined, { signal: ctx.signal }).finally(() => mark('end', ctx));
    case 'ask':
      return await ctx.ask('Which one?');
    case 'tell':
      await ctx.stream('one ');
      await untilThere(`${marks}.go`, ctx);
      return await ctx.stream('two');
    default:
      return message;
  }
}

agent.onMessage(converse);
agent.skill('echo', { description: 'Says it again' }, (_, ctx) => converse(ctx.message, ctx));

await agent.start();
