"""How many model streams one turns process carries: `make bench ARGS="streams_in_flight [N ...]"`.

Every stream writes 50 tokens per second, a piece of text each, and all start at once, which is worse than life. For each N:
tokens per second of a stream, and of the slowest; how late a greenlet that sleeps for 0.1 s woke (a process later than 1 s claims
nothing new), in the first 2 s, when all connect, and after; CPU of this process, of the stand-in, and of all other processes, which
spoil the figures. Nothing but the provider runs here: a real turns process also pushes the text on,
writes checkpoints and renews leases.
"""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import gevent  # noqa: E402
import psutil  # noqa: E402
from benchmarks.house import ROOT  # noqa: E402
from benchmarks.meters import machine_cpu  # noqa: E402

from models.settings.providers import registry  # noqa: E402
from workers.providers import ModelRequest, Provider, provider_for  # noqa: E402

PACE = 50
SECONDS = 12
COUNTS = (50, 100, 200, 300, 400)


def tokens_per_second(provider: Provider, number: int) -> float:
    """Return the pace of one stream, from its first text to its last."""
    times: list[float] = []
    prompt = f"say {PACE * SECONDS} tokens at {PACE}/s\n({number})"
    request = ModelRequest("stand-in", "Be brief.", [{"role": "user", "content": prompt}], [], max_tokens=100_000)
    reply = provider.ask(request, lambda _, __: times.append(time.monotonic()))
    return reply.usage.output_tokens / (times[-1] - times[0])


def watch(lags: list[float]) -> None:
    while True:
        began = time.monotonic()
        gevent.sleep(0.1)
        lags.append(time.monotonic() - began - 0.1)


def measure(provider: Provider, count: int, standin: psutil.Process) -> list[float]:
    lags: list[float] = []
    watcher = gevent.spawn(watch, lags)
    began, own, model, machine = time.monotonic(), time.process_time(), sum(standin.cpu_times()[:2]), machine_cpu()
    rates = [gevent.spawn(tokens_per_second, provider, number) for number in range(count)]
    gevent.joinall(rates, raise_error=True)
    percent = 100 / (time.monotonic() - began)
    watcher.kill()
    own, model, machine = time.process_time() - own, sum(standin.cpu_times()[:2]) - model, machine_cpu() - machine
    starting, after = lags[:20], sorted(lags[20:])
    return [
        count,
        sum(rate.value for rate in rates) / count,
        min(rate.value for rate in rates),
        max(starting) * 1000,
        after[int(len(after) * 0.99)] * 1000,
        after[-1] * 1000,
        own * percent,
        model * percent,
        (machine - own - model) * percent,
        own / count / PACE / SECONDS * 1e6,
    ]


def main() -> None:
    command = [sys.executable, "-m", "deploy.standin", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        os.environ |= {"ANTHROPIC_BASE_URL": process.stdout.readline().split()[-1], "ANTHROPIC_API_KEY": "none"}
        provider = provider_for(registry()[0], "none")
        columns = "streams tok/s slowest start_ms p99_ms max_ms CPU% standin% others% us/token"
        print(columns.replace(" ", "\t"))
        for count in [int(word) for word in sys.argv[1:]] or COUNTS:
            figures = measure(provider, count, psutil.Process(process.pid))
            print("\t".join(f"{figure:.{1 if at in (1, 2) else 0}f}" for at, figure in enumerate(figures)), flush=True)
        process.terminate()


if __name__ == "__main__":
    main()
