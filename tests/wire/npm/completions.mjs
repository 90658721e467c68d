// A conversation through OpenAI's npm SDK, the same as `by_python` in tests/wire/test_the_npm_sdk_of_openai_talks_like_the_python_one.py.
// Prints a line of JSON: the texts, reasons and calls of the answers, and an error.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.ASSENT_URL}/v1`, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const { completions } = client.chat;
const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
const tools = [{ type: 'function', function: { name: 'look_up', description: 'Look up a number.', parameters } }];

const [{ id: model }] = (await client.models.list()).data;
const messages = [{ role: 'user', content: 'Go.' }];
const first = await completions.create({ model, messages, tools });
const { message, finish_reason: reason } = first.choices[0];
const metadata = { session_id: first.assent.session_id };
messages.push(message);
for (const call of message.tool_calls) {
  messages.push({ role: 'tool', tool_call_id: call.id, content: `it is ${JSON.parse(call.function.arguments).n}` });
}

const stream = completions.stream({ model, messages, tools, metadata, stream_options: { include_usage: true } });
let pieces = '';
for await (const chunk of stream) pieces += chunk.choices[0]?.delta?.content ?? '';
const last = await stream.finalChatCompletion();

let missing;
try {
  await completions.create({ model: 'assent/agent_none', messages });
} catch (error) {
  missing = [error.constructor.name, error.status, error.code, error.param, Boolean(error.requestID)];
}
console.log(
  JSON.stringify({
    said: message.content,
    reason,
    called: message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
    pieces,
    last: [last.choices[0].message.content, last.choices[0].finish_reason, last.usage.total_tokens],
    missing,
  }),
);
