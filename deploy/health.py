"""`assent-health`: the probe of one process, for supervisors. docs/operation.md explains the probes.

Supervisors call it every few seconds, so it imports only the standard library, and is done in a few hundredths of a second.
"""

import os
import sys
import time
from pathlib import Path

OLDEST_SECONDS = 60
"""A process is stuck if it did not renew its file for so long. While Redis is away, a worker's attempts are up to 45 s apart."""
USAGE = "usage: assent-health alive|ready web|turns|tools|sweeps|deliver|beat|flower"
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the address at which to reach a process that listens everywhere
WORKERS = ("turns", "tools", "sweeps", "deliver", "beat", "flower")


def main() -> None:
    """Exit with 0 if the process is alive, or ready; with 1 and a line on stderr if it is not."""
    match sys.argv[1:]:
        case ["alive", "web"]:
            problem = _of_web("/healthz")
        case ["ready", "web"]:
            problem = _of_web("/readyz")
        case ["alive" | "ready" as question, name] if name in WORKERS:
            problem = _of_files(name, ready=question == "ready")
        case _:
            sys.stderr.write(f"{USAGE}\n")
            sys.exit(2)
    if problem:
        sys.exit(f"assent-health: {problem}")


def _of_files(name: str, *, ready: bool) -> str | None:
    folder = os.environ.get("ASSENT_PROBE_FOLDER")
    if not folder:
        return f"ASSENT_PROBE_FOLDER is not set: set it to the same folder as for {name}"
    path = Path(folder) / f"{name}.alive"
    try:
        age = time.time() - path.stat().st_mtime
    except OSError as error:
        return f"{name} has not begun: {path}: {error.strerror}"
    if age > OLDEST_SECONDS:
        return f"{name} is stuck: it last renewed {path} {age:.0f} s ago"
    if ready and not path.with_suffix(".ready").exists():
        return f"{name} takes no work yet"
    return None


def _of_web(path: str) -> str | None:
    from http.client import HTTPConnection, HTTPException

    host = os.environ.get("HOST", "127.0.0.1")
    connection = HTTPConnection(LOOPBACK.get(host, host), int(os.environ.get("PORT", "8000")), timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return (
            None if response.status == 200 else f"web: {path} is {response.status}: {response.read(500).decode(errors='replace')}"
        )
    except (OSError, HTTPException) as error:
        return f"web does not respond: {error}"
    finally:
        connection.close()
