// A conversation through the npm SDK: the same as `by_python` in tests/wire/test_the_npm_sdk_talks_like_the_python_one.py.
// Prints two lines of JSON: the session, as soon as it runs, and at the end what was streamed, listed and dispatched.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const client = new Anthropic({ baseURL: process.env.ASSENT_URL, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const { agents, environments, sessions } = client.beta;
const inputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };

const [environment] = (await environments.list()).data;
const agent = await agents.create({
  name: 'A',
  model: 'claude-opus-5-5',
  tools: [
    { type: 'agent_toolset_20260401', configs: [{ name: 'bash', permission_policy: { type: 'always_ask' } }] },
    { type: 'custom', name: 'look_up', description: 'd', input_schema: inputSchema },
  ],
});
const session = await sessions.create({ agent: agent.id, environment_id: environment.id });

const lookUp = betaTool({ name: 'look_up', description: 'd', inputSchema, run: ({ n }) => `it is ${n}` });
const dispatched = [];
const stream = await sessions.events.stream(session.id, { event_deltas: ['agent.message'] });
const running = (async () => {
  for await (const call of sessions.events.toolRunner(session.id, { tools: [lookUp], maxIdleMs: 200 })) {
    if (call.posted) dispatched.push(call.name);
  }
})();
await sessions.events.send(session.id, { events: [{ type: 'user.message', content: [{ type: 'text', text: 'Go.' }] }] });
console.log(JSON.stringify({ session: session.id }));

const streamed = [];
for await (const event of stream) {
  streamed.push(event.type);
  if (event.type === 'agent.tool_use') {
    const answer = { type: 'user.tool_confirmation', tool_use_id: event.id, result: 'allow' };
    await sessions.events.send(session.id, { events: [answer] });
  }
  if (event.type === 'session.status_idle' && event.stop_reason.type === 'end_turn') break;
}
await running;

const listed = [];
for await (const event of sessions.events.list(session.id, { limit: 5 })) listed.push(event.type);
const [thread] = (await sessions.threads.list(session.id)).data;
let missing;
try {
  await sessions.retrieve('sesn_none');
} catch (error) {
  missing = [error.constructor.name, error.status, Boolean(error.requestID)];
}
const ended = (await sessions.archive(session.id)).status;
console.log(JSON.stringify({ streamed, listed, dispatched, missing, ended, thread: thread.status }));
