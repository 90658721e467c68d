// Runs the npm SDK's EnvironmentWorker until standard input ends. `python_worker` in tests/wire/running.py runs the Python SDK's.
// Argument: the folder in which the tools run.
import Anthropic from '@anthropic-ai/sdk';

const stop = new AbortController();
process.stdin.resume().on('end', () => stop.abort());

const client = new Anthropic({ baseURL: process.env.ASSENT_URL, apiKey: 'unused' });
const worker = client.beta.environments.work.worker({
  environmentId: process.env.ASSENT_ENVIRONMENT_ID,
  environmentKey: process.env.ASSENT_ENVIRONMENT_KEY,
  workdir: process.argv[2],
  maxIdleMs: 200,
  signal: stop.signal,
});
await worker.run();
