/** An agent that lets a model work, with a tool of its own and one that is another agent's skill. */
import { a2a, Agent, tool, type Model } from '@agentplatform/sdk';

const population = tool<{ city: string }>(
  { name: 'population', description: 'Inhabitants of a city' },
  ({ city }) => ({ Oslo: 709_000 })[city] ?? 0,
);
const greet = a2a.tool({ agentId: 'agt_hello', skill: 'greet' });

// Any async function from a request to a reply; this one stands for a call to your model's provider.
const model: Model = async ({ messages }) => {
  const [first, second] = messages.filter(({ role }) => role === 'tool');
  if (first && second) return { text: `${second.text} ${first.text} people live here.` };
  return {
    toolCalls: [
      { name: 'population', arguments: { city: 'Oslo' } },
      { name: 'greet', arguments: { name: 'Oslo' } },
    ],
  };
};

const guide = new Agent({ name: 'Guide', instructions: 'Answer with figures.', tools: [population, greet], model });
console.log((await guide.run('How many people live in Oslo?')).content);
