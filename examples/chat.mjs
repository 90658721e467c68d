// Talk to an agent by OpenAI's npm SDK, and decide here what it may do. Needs Node 22.18 or newer, which reads TypeScript.
//
//   npm install openai
//   export ASSENT_URL=... ASSENT_API_KEY=...    # a key with the scopes sessions, read and approvals
//   node examples/chat.mjs "List the files."
import { createInterface } from 'node:readline/promises';
import OpenAI from 'openai';
import { asks, decision } from './decisions.ts';

/** Send a message, answer what the agent asks for by `decide`, and return the agent's last text. */
export async function talk(client, model, text, decide) {
  const messages = [{ role: 'user', content: text }];
  const metadata = { approvals: 'tools' };
  for (;;) {
    const stream = client.chat.completions.stream({ model, messages, metadata });
    stream.on('content', (piece) => process.stderr.write(piece));
    stream.on('chunk', (chunk) => {
      if (chunk.assent) metadata.session_id = chunk.assent.session_id;
    });
    const message = await stream.finalMessage();
    messages.push(message);
    const questions = asks(message);
    if (questions.size === 0) return message.content;
    for (const [id, question] of questions) messages.push(await decide(id, question));
  }
}

/** Return the decision that a person types. */
async function byKeyboard(id, question) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const chosen = (await terminal.question(`${question.message}\n${question.options.join(', ')}? `)).trim();
  terminal.close();
  return ['once', 'session', 'always'].includes(chosen) ? decision(id, 'approve', { scope: chosen }) : decision(id, 'deny');
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const client = new OpenAI({ baseURL: `${process.env.ASSENT_URL}/v1`, apiKey: process.env.ASSENT_API_KEY });
  const [{ id: model }] = (await client.models.list()).data;
  await talk(client, model, process.argv.slice(2).join(' '), byKeyboard);
}
