/** What callers do: find agents, call them, hear them, have work done without waiting, answer questions. */
import { A2AClient, AgentNotFound, InputRequired, RateLimited } from '@agentplatform/sdk';

const client = new A2AClient();

for await (const agent of client.discover({ skill: 'find' })) {
  console.log(agent.id, agent.dialect, agent.rating);
}

const full = await client.callFull({ target: 'agt_ts_librarian', skill: 'find', input: { topic: 'tides', limit: 2 } });
console.log(full.data, full.id, full.trace['trace_id']);

for await (const event of client.stream({ target: 'agt_ts_librarian', skill: 'recite' })) {
  if (event.type === 'chunk') process.stdout.write(event.content);
}

try {
  await client.call({ target: 'agt_nobody', skill: 'find', timeoutMs: 5000 });
} catch (error) {
  if (error instanceof AgentNotFound) console.log(error.code, error.retryable);
  else if (error instanceof RateLimited) console.log('again in', error.retryAfterS);
  else throw error;
}

try {
  await client.call({ target: 'agt_ts_librarian', skill: 'report', input: { topic: 'tides' } });
} catch (error) {
  if (!(error instanceof InputRequired)) throw error;
  console.log(error.question);
  console.log((await error.handle.send('300')).text);
}

const handle = await client.submit({ skill: 'find', input: { topic: 'rivers' }, idempotencyKey: 'rivers-1' });
console.log((await handle.result({ timeoutS: 60 })).data);
