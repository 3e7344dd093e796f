/** Calls an agent in Python: waits for it, hears it, answers what it asks. Says as JSON what came of each. */
import { a2a, InputRequired } from '@agentplatform/sdk';

const asked = { target: 'agt_python_teller', skill: 'tell' };
const called = (await a2a.callFull({ ...asked, input: { city: 'Rome' } })).text;

let streamed = '';
for await (const event of a2a.stream({ ...asked, input: { city: 'Rome' } })) {
  if (event.type === 'chunk') streamed += event.content;
}

let question = '';
let answered = '';
try {
  await a2a.call({ ...asked, input: { city: 'Oslo' } });
} catch (error) {
  if (!(error instanceof InputRequired)) throw error;
  question = error.question;
  answered = (await error.handle.send('grey')).text;
}
console.log(JSON.stringify({ called, streamed, question, answered }));
