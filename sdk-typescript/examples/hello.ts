import { Agent } from '@agentplatform/sdk';

const agent = new Agent({ name: 'Hello' });

agent.skill('greet', { description: 'Greets somebody' }, ({ name }) => `Hello, ${name}!`);

await agent.start();
