// Both idioms of examples/agents.py through the npm SDK: send and then stream, or stream and then send.
// Arguments: the idiom, the session. Sends two messages, and prints the ids and types of all streamed events as JSON.
// Prints "sent" after each message. Before a stream that follows its message, waits for a line, which says that the run has ended.
import { createInterface } from 'node:readline';
import Anthropic from '@anthropic-ai/sdk';

const [idiom, session] = process.argv.slice(2);
const client = new Anthropic({ baseURL: process.env.ASSENT_URL, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const { events } = client.beta.sessions;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function send(text) {
  await events.send(session, { events: [{ type: 'user.message', content: [{ type: 'text', text }] }] });
  console.log('sent');
  if (idiom === 'send-then-stream') await lines.next();
}

const streamed = [];
for (const text of ['One.', 'Two.']) {
  if (idiom === 'send-then-stream') await send(text);
  const stream = await events.stream(session);
  if (idiom === 'stream-then-send') await send(text);
  for await (const event of stream) {
    streamed.push([event.id, event.type]);
    if (event.type === 'session.status_idle') break;
  }
}
console.log(JSON.stringify(streamed));
process.exit(0);
