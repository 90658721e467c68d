"""The user's cycle of Assent beside other systems that make the same cycle durable.

    make bench ARGS="beside_peers --install"       once: their environments, below --venvs (default ~/.cache/assent-peers)
    make bench ARGS="beside_peers [--seconds 8] [--in-flight 8] [--repeat 3] [--only NAME]"

Each cycle has two model calls by the official SDK, `echo done` in bubblewrap with Assent's own arguments, a decision, and a reader
who hears of each step by server-sent events. `peers/README.md` says what each system is. All stand in turn, each on servers of its
own with the same settings, Assent as in `user_cycle`. Each is driven by a client process without an SDK, whose CPU is shown and not
counted: it shares the cores, so clients must be equal.

Prints, for each repetition and system, cycles per second, CPU per cycle by process, write transactions and WAL, and at the end the
medians with the ratios to Assent within each repetition. A cycle's CPU is the whole machine's without the client's and the model's,
since nobody collects the inner process of a sandbox. So nothing else may run beside it.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from benchmarks.house import Servers, environment, servers
from benchmarks.meters import Cost, Meter, spin_ms
from benchmarks.user_cycle import ROOT, Client, measure, whole

from deploy.folder import free_port
from deploy.supervisor import Child, Supervisor

HERE = Path(__file__).parent / "peers"
SHARED = ("anthropic", "flask", "gevent", "gunicorn", "packaging", "psycopg[binary,pool]", "redis")
"""Installed for each peer in the versions that Assent runs with here."""
CELERY = "{python} -m celery -A {module} worker --pool prefork --concurrency 4 --loglevel warning --without-gossip --without-mingle"
WEB = "{python} -m gunicorn {module}:web --bind 127.0.0.1:{port} --no-control-socket --log-level warning "


@dataclass(frozen=True)
class Peer:
    """One system: its module in `peers`, its packages, and its processes by name."""

    module: str
    packages: tuple[str, ...]
    lines: dict[str, str]
    start: str = "{front}/sessions/SESSION"
    """The address that starts a session."""


PEERS = {
    "celery-min": Peer("celery_min", ("celery[redis]",), {"workers": CELERY, "web": f"{WEB} --worker-class gevent"}),
    "langgraph": Peer(
        "langgraph_celery",
        ("celery[redis]", "langgraph==1.2.22", "langgraph-checkpoint-postgres==3.2.0"),
        {"workers": CELERY, "web": f"{WEB} --worker-class gevent"},
    ),
    "dbos": Peer("dbos_flask", ("dbos==3.4.0",), {"web": f"{WEB} --worker-class gthread --workers 2 --threads 16"}),
    "restate": Peer(
        "restate_service",
        ("restate-sdk[serde]==1.3.0", "granian==2.8.7"),
        {
            "server": "{venv}/node_modules/.bin/restate-server --config-file {folder}/restate.toml --no-logo",
            "workers": "{venv}/bin/granian --interface asgi --http 2 --host 127.0.0.1 --port {sdk} --workers 2 {module}:app",
            "web": f"{WEB} --worker-class gevent",
        },
        "{ingress}/sessions/start/send",
    ),
}
RESTATE = "@restatedev/restate-server@1.7.12"
RESTATE_SETTINGS = """
base-dir = "{folder}/restate"
listen-mode = "tcp"
bind-ip = "127.0.0.1"
bind-address = "127.0.0.1:{node}"
advertised-address = "http://127.0.0.1:{node}"
disable-telemetry = true
default-num-partitions = 4
log-filter = "warn"
[admin]
bind-address = "127.0.0.1:{admin}"
disable-web-ui = true
[ingress]
bind-address = "127.0.0.1:{ingress_port}"
"""


def install(venvs: Path) -> None:
    """Make the environments that are missing."""
    for name, peer in PEERS.items():
        venv = venvs / name
        if not (venv / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        packages = [_as_here(package) for package in (*SHARED, *peer.packages)]
        subprocess.run([venv / "bin" / "pip", "install", "--quiet", *packages], check=True)
    subprocess.run(["npm", "install", "--silent", "--prefix", venvs / "restate", RESTATE], check=True)


def _as_here(package: str) -> str:
    return package if "==" in package else f"{package}=={metadata.version(package.partition('[')[0])}"


def sandbox(folder: Path) -> dict[str, Any]:
    """Return Assent's arguments for one command in bubblewrap, and the files that it reads, below `folder`."""
    from workers.tools.sandbox import bubblewrap  # reads the settings

    root = folder / "peers" / "SESSION"
    argv, contents = bubblewrap.wrapped([bubblewrap.bash(), "--noprofile", "--norc", "-c", "echo done"], root, root / "files")
    files = {}
    for fd, content in contents.items():
        files[str(fd)] = str(folder / f"descriptor-{fd}")
        Path(files[str(fd)]).write_bytes(content)
    return {"argv": argv, "files": files, "folder": str(root / "files")}


@contextlib.contextmanager
def standing(on: Servers, peer: Peer, venv: Path) -> Iterator[tuple[dict[str, int], list[str]]]:
    """Run a peer's processes. Returns their ids by name, and the words of its client's command line."""
    ports = {name: free_port() for name in ("port", "sdk", "admin", "ingress_port", "node")}
    values = {"python": venv / "bin" / "python", "venv": venv, "module": peer.module, "folder": on.folder.path, **ports}
    front, ingress = f"http://127.0.0.1:{ports['port']}", f"http://127.0.0.1:{ports['ingress_port']}"
    env = {
        "PATH": os.environ["PATH"],
        "PEER_MODEL": on.model_url,
        "PEER_DATABASE": on.postgres.url("postgres", "peer"),
        "PEER_REDIS": on.redis_url.rpartition("/")[0] + "/9",
        "PEER_FRONT": front,
        "PEER_INGRESS": ingress,
        "PEER_SANDBOX": json.dumps(sandbox(on.folder.path)),
    }
    with psycopg.connect(on.postgres.url("postgres", "postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE peer")
    prepare = f"import {peer.module} as peer; peer.prepare()"
    subprocess.run([values["python"], "-c", prepare], cwd=HERE, env=env, check=True)
    (on.folder.path / "restate.toml").write_text(RESTATE_SETTINGS.format(**values))
    supervisor = Supervisor(HERE, output=(on.folder.path / "peer.log").open("w"))
    try:
        for name, line in peer.lines.items():
            supervisor.start(Child(name, line.format(**values), env))
        supervisor.wait_for("the front", lambda: _answers("GET", f"{front}/ready"), 60)
        if "server" in peer.lines:
            body = {"uri": f"http://127.0.0.1:{ports['sdk']}"}
            admin = f"http://127.0.0.1:{ports['admin']}/deployments"
            supervisor.wait_for("the deployment", lambda: _answers("POST", admin, body), 60)
        yield on.supervisor.pids | supervisor.pids, [front, peer.start.format(front=front, ingress=ingress)]
    except BaseException:
        print((on.folder.path / "peer.log").read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        supervisor.hurry.set()
        supervisor.stop()


def _answers(method: str, url: str, body: object = None) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.request(method, url, json=body, trust_env=False, timeout=10).is_success
    return False


def measure_peer(peer: Peer, venv: Path, seconds: float, in_flight: int) -> Cost:
    """Run a peer and its client. Returns the cost of a cycle."""
    with servers() as on:
        os.environ.update(environment(on) | {"ASSENT_SHELL": "bubblewrap"})  # for the arguments of the sandbox
        with standing(on, peer, venv) as (pids, words):
            client = Client([str(HERE / "reader.py"), *words, str(in_flight)])
            client.cycles(in_flight * 3)
            count = max(40, int(in_flight * 4 / client.cycles(in_flight * 4) * seconds))
            with psycopg.connect(on.postgres.url("postgres", "peer"), autocommit=True) as db:
                db.execute("ANALYZE")
            meter = Meter(on.postgres.url("postgres", "peer"), {**pids, "client": client.process.pid})
            before = meter.read()
            client.cycles(count)
            cost = Cost.between(before, meter.read(), count)
            client.close()
    return cost


def everything(cost: Cost) -> float:
    """Return the CPU milliseconds per cycle of the machine but for the model's and the client's."""
    return whole(cost) + cost.foreign_ms


def print_cost(name: str, cost: Cost) -> None:
    """Print one measurement."""
    wrote = f"{cost.write_tx:.1f} write tx, {cost.wal_bytes:.0f} B WAL"
    print(f"  {name:12} {cost.rate:6.1f} cycles/s  {everything(cost):6.1f} ms CPU  {wrote}")
    parts = {part: ms for part, ms in cost.cpu_ms.items() if part != "standin"} | {"not named": cost.foreign_ms}
    print("    CPU ms: " + "  ".join(f"{part} {ms:.1f}" for part, ms in parts.items()), flush=True)


def print_medians(costs: dict[str, list[Cost]]) -> None:
    """Print the table of medians."""

    def median(runs: list[Cost], figure: Callable[[Cost], float]) -> float:
        return statistics.median(map(figure, runs))

    print("\n| system | cycles/s | CPU ms | write tx | WAL kB | client's CPU ms | Assent: times as fast, times the CPU |")
    print("|---|---|---|---|---|---|---|")
    ours = costs["assent"]
    for name, runs in costs.items():
        pairs = list(zip(ours, runs, strict=True))
        faster = statistics.median(mine.rate / theirs.rate for mine, theirs in pairs)
        dearer = statistics.median(everything(mine) / everything(theirs) for mine, theirs in pairs)
        figures = (median(runs, lambda cost: cost.rate), median(runs, everything), median(runs, lambda cost: cost.write_tx))
        wal, client = median(runs, lambda cost: cost.wal_bytes / 1000), median(runs, lambda cost: cost.cpu_ms["client"])
        print(f"| {name} | " + " | ".join(f"{each:.1f}" for each in (*figures, wal, client)) + f" | {faster:.2f}, {dearer:.2f} |")


def main() -> None:
    """Measure each system in turn, and print. Does nothing if no peer is installed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--in-flight", type=int, default=8)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--only", choices=PEERS, action="append", help="these peers alone")
    options.add_argument("--venvs", type=Path, default=Path.home() / ".cache" / "assent-peers")
    options.add_argument("--install", action="store_true")
    chosen = options.parse_args()
    if chosen.install:
        install(chosen.venvs)
        return
    peers = [name for name in chosen.only or PEERS if (chosen.venvs / name / "bin" / "python").exists()]
    if not peers:
        print(f"no peer is installed in {chosen.venvs}: see --install")
        return
    costs: dict[str, list[Cost]] = {}
    for repetition in range(chosen.repeat):
        print(f"\nrepetition {repetition + 1}: spin {spin_ms()} ms")
        order = ("assent", *peers)
        for name in order if repetition % 2 == 0 else reversed(order):
            if name == "assent":
                cost = measure(ROOT, "bash", chosen.seconds, chosen.in_flight, "bubblewrap", program="bare_client.py")
            else:
                cost = measure_peer(PEERS[name], chosen.venvs / name, chosen.seconds, chosen.in_flight)
            costs.setdefault(name, []).append(cost)
            print_cost(name, cost)
    print_medians(costs)


if __name__ == "__main__":
    main()
