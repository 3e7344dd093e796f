/** An agent with everything: schemas, progress, a question, calls to others, messages, errors. */
import { Agent, AgentError, File } from '@agentplatform/sdk';

const agent = new Agent({ name: 'TS Librarian', concurrency: 4 });

agent.skill<{ topic: string; limit?: number }>(
  'find',
  {
    description: 'Find books about a topic',
    input: {
      type: 'object',
      properties: { topic: { type: 'string' }, limit: { type: 'integer', default: 3 } },
      required: ['topic'],
    },
    tags: ['search'],
    idempotent: true,
  },
  ({ topic, limit = 3 }) => Array.from({ length: limit }, (_, number) => `${topic}, volume ${number + 1}`),
);

agent.skill<{ topic: string }>('report', { description: 'Write a report' }, async ({ topic }, ctx) => {
  const words = await ctx.ask<number>('How many words?', { type: 'integer' });
  const greeting = await ctx.call({ skill: 'greet', input: { name: topic } });
  await ctx.progress(0.5, 'greeted');
  await ctx.artifact(new File({ bytes: new Uint8Array([37, 80, 68, 70]), name: 'report.pdf' }), { name: 'report' });
  ctx.usage({ outputTokens: words });
  return { words, greeting };
});

agent.skill('recite', { description: 'Recite a poem, line by line' }, async function* (_, ctx) {
  for (const line of ['The sea ', 'comes and ', 'goes.']) {
    if (ctx.cancelled) return;
    yield line;
  }
});

agent.skill<{ title: string }>('lend', { description: 'Lend a book' }, ({ title }) => {
  if (title === 'the only copy') throw new AgentError('Somebody else has it.', { retryable: true });
  return `${title} is yours for a week`;
});

agent.onMessage((message, ctx) => `You said "${message.text}"; we spoke ${ctx.history.length} times before.`);

await agent.start();
