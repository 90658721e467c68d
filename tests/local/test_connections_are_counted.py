"""docs/scaling.md says how many connections to Postgres each process of the Procfile takes at most."""

import re
from pathlib import Path

from local.documents import PAGES

from deploy.doctor import connections
from models.settings import Settings
from models.settings.variables import PRIVATE, PROCESSES
from workers.celery import QUEUES

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| (\d+) \|$", PAGES["docs/scaling.md"], re.MULTILINE)
COMMANDS = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines() if not line.startswith("#"))
COPIES = ("--workers ", "--pool prefork --concurrency ")
"""The options that multiply system processes: of gunicorn, and of Celery's pool of processes."""


def copies(process: str) -> tuple[str, int]:
    """Return how the page spells the number of a process's system processes, and their number by default."""
    for option in COPIES:
        if match := re.search(re.escape(option) + r"\$\{(\w+):-(\d+)\}", COMMANDS[process]):
            return f"`{match[1]}` ({match[2]})", int(match[2])
    return "1", 1


def pools(process: str) -> dict[str, int]:
    """Return the sizes of a process's pools: by its URLs of databases, and of heartbeats if its tasks hold leases."""
    size = Settings.model_fields["database_pool_size"].default
    sizes = {"app": size} if process in PRIVATE["DATABASE_URL"] else {}
    kinds = [kind for kind, queue in QUEUES.items() if queue == process]
    if any("leases.hold(" in file.read_text() for kind in kinds for file in (ROOT / "workers").glob(f"{kind}.py")):
        sizes["heartbeats"] = 1
    return sizes | ({"system": size} if process in PRIVATE["DATABASE_SYSTEM_URL"] else {})


def test_the_page_counts_the_connections_of_each_process() -> None:
    expected = []
    for process in PROCESSES:
        spelled, number = copies(process)
        expected.append((process, spelled, ", ".join(pools(process)) or "none", str(number * sum(pools(process).values()))))
    assert expected == ROWS


def test_the_page_adds_them_up() -> None:
    assert f"| one of each | | | {sum(int(row[3]) for row in ROWS)} |" in PAGES["docs/scaling.md"]


def test_the_doctor_counts_the_same() -> None:
    assert connections() == {process: int(row[3]) for process, row in zip(PROCESSES, ROWS, strict=True)}
