"""Probes for readiness: the workers, the sandbox of shell commands, a URL."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
from kombu.exceptions import OperationalError

from models.settings import broker
from models.settings.variables import environment_of


class Workers:
    """The Celery workers behind a broker."""

    def __init__(self, redis_url: str) -> None:
        from celery import Celery  # the import takes a third of a second, while the workers are starting

        options = broker.options(socket_timeout=5, socket_connect_timeout=5)
        self._celery: Any = Celery(broker=redis_url, broker_transport_options=options)

    def respond(self) -> bool:
        """True if the workers for turns, tools, sweeps and deliveries respond to a ping within half a second."""
        try:
            replies: list[dict[str, object]] = self._celery.control.ping(timeout=0.5)
        except OperationalError:
            return False
        return {name.partition("@")[0] for reply in replies for name in reply} >= {"turns", "tools", "sweeps", "deliver"}


class ShellProbe:
    """Checks during the start whether bubblewrap works here. It may be installed and yet forbidden."""

    def __init__(self) -> None:
        # A process of its own keeps the tools' imports out of this one. It starts in the folder of Assent's packages, as all do.
        program = "import sys; from workers.tools.sandbox.bubblewrap import shell_problem; sys.exit(shell_problem() is not None)"
        self._process = subprocess.Popen(  # noqa: S603 - no input in it
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[1],
            env={**environment_of("tools", os.environ), "ASSENT_SHELL": "bubblewrap"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def works(self) -> bool:
        """Wait for the check, and return True if bubblewrap works."""
        return self._process.wait() == 0


def responds(url: str, login: tuple[str, str] | None = None) -> bool:
    """True if a GET of this machine's URL succeeds within two seconds. `verify=False`: http needs no certificates loaded."""
    try:
        return httpx2.get(url, auth=login, timeout=2, trust_env=False, verify=False).is_success
    except httpx2.HTTPError:
        return False
