/** What must, and must not, type-check; never run. */
import { a2a, Agent, tool, type StandardSchema } from '@agentplatform/sdk';

declare const city: StandardSchema<{ city: string }>;
const agent = new Agent({ name: 'Types' });

agent.skill('typed', { input: city }, async (input, ctx) => {
  const text: string = input.city;
  const asked: { city: string } = await ctx.ask('Where?', city);
  const words: string = await ctx.ask('What?');
  return [text, asked, words];
});
agent.skill<{ n: number }>('said', { input: { type: 'object' } }, ({ n }) => n + 1);
const doubled: Promise<number> = tool<{ n: number }, number>({ name: 'double' }, ({ n }) => n * 2)({ n: 2 });
const full: Promise<{ sum: number }> = a2a.call<{ sum: number }>({ skill: 'add' });
new Agent({
  name: 'Tools',
  tools: [a2a.tool({ agentId: 'agt_x', skill: 'y' }), tool<{ n: number }>({ name: 'n' }, () => 1)],
});

// @ts-expect-error a city is a text
agent.skill('wrong', { input: city }, (input) => input.city + input.country);
// @ts-expect-error there is no such option
agent.skill('wrong', { inputs: {} }, () => 1);
// @ts-expect-error an agent has a name
new Agent({ instructions: 'none' });
// @ts-expect-error what is called has no such member
void a2a.call({ agent: 'agt_x' });
// @ts-expect-error only a chunk has content
for await (const event of a2a.stream({ skill: 'x' })) void event.content;

void [doubled, full];
