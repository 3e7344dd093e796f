/** A call whose outcome is posted to a URL, signed with the secret of the key that it was made with. */
import { createServer } from 'node:http';
import { a2a } from '@agentplatform/sdk';

const secret = process.env['SIGNING_SECRET'] ?? '';

const server = createServer(async (request, reply) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const told = await a2a.verifySignature(Buffer.concat(pieces), request.headers, secret);
  reply.writeHead(204).end();
  console.log(told['status'], told['result']);
  server.close();
});

server.listen(0, '127.0.0.1', async () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  await a2a.submit({ skill: 'greet', input: { name: 'Ada' }, callbackUrl: `http://127.0.0.1:${port}/told` });
});
