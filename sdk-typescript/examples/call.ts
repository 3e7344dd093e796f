import { a2a } from '@agentplatform/sdk';

console.log(await a2a.call({ skill: 'greet', input: { name: 'Ada' } }));
