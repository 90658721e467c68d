// Reads the threads of a session through the npm SDK, as `by_python` does in tests/wire/test_the_sdks_read_every_thread.py.
// Arguments: the ids of the session and of a child thread that has ended. Prints one line of JSON.
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.env.ASSENT_URL, apiKey: process.env.ASSENT_API_KEY, maxRetries: 0 });
const { sessions } = client.beta;
const [sessionId, threadId] = process.argv.slice(2);
const inSession = { session_id: sessionId };

const all = async (page, of) => {
  const values = [];
  for await (const row of page) values.push(of(row));
  return values;
};
const shown = (event) => [event.type, event.session_thread_id ?? null, event.agent_name ?? null];

const listed = await all(sessions.threads.list(sessionId, { limit: 1 }), (thread) => thread.id);
const ended = await all(sessions.threads.list(sessionId, { statuses: ['terminated'] }), (thread) => thread.id);
const thread = await sessions.threads.retrieve(threadId, inSession);
const streamed = await all(await sessions.threads.events.stream(threadId, inSession), shown);
const events = await all(sessions.threads.events.list(threadId, { ...inSession, limit: 5 }), shown);
const ofSession = await all(sessions.events.list(sessionId, { limit: 5 }), shown);
const archived = (await sessions.threads.archive(threadId, inSession)).status;
const { name, type } = thread.agent;
console.log(JSON.stringify({ listed, ended, agent: [name, type], streamed, events, session: ofSession, archived }));
