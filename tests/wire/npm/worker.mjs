// The npm SDK's EnvironmentWorker, until its input ends: what `python_worker` in tests/wire/running.py is for the Python SDK's.
// Argument: the folder in which the tools run.
import Anthropic from '@anthropic-ai/sdk';

const over = new AbortController();
process.stdin.resume().on('end', () => over.abort());

const client = new Anthropic({ baseURL: process.env.ASSENT_URL, apiKey: 'unused' });
const worker = client.beta.environments.work.worker({
  environmentId: process.env.ASSENT_ENVIRONMENT_ID,
  environmentKey: process.env.ASSENT_ENVIRONMENT_KEY,
  workdir: process.argv[2],
  maxIdleMs: 200,
  signal: over.signal,
});
await worker.run();
