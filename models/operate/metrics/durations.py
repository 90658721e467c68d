"""How long requests, model calls and tools take, as histograms of one process of the Procfile.

The process serves them at ASSENT_METRICS_ADDRESS, for Prometheus. Its forks, such as gunicorn's workers and the pool of `tools`,
send it each duration by a socket pair. Without the setting nothing is measured, and nothing is imported.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from models.operate.metrics.families import OTHERS, Family
from models.settings import settings

REQUESTS = "http_server_request_duration_seconds"
MODEL_CALLS = "gen_ai_client_operation_duration_seconds"
TOOLS = "assent_tool_duration_seconds"
MOST_SERIES = 500
"""Combinations of labels of one histogram. Further ones count as `OTHERS`."""
_LONGEST_MESSAGE = 4096

_OF_REQUESTS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_OF_MODELS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_OF_TOOLS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600)

DURATIONS: dict[str, tuple[Family, tuple[str, ...]]] = {
    REQUESTS: (
        Family("histogram", "The time until the response to a request begins.", _OF_REQUESTS),
        ("http_request_method", "http_route", "http_response_status_code"),
    ),
    MODEL_CALLS: (
        Family("histogram", "The time of a request to a model, until its reply is complete.", _OF_MODELS),
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"),
    ),
    TOOLS: (
        Family("histogram", "The time that a tool took.", _OF_TOOLS),
        ("gen_ai_tool_name", "outcome"),
    ),
}
"""The histograms of processes by name, with the names of their labels. The first two are OpenTelemetry's."""


@dataclass
class Watch:
    """A duration that is being measured."""

    labels: tuple[str, ...]
    """The values of the histogram's labels. Whoever measures may replace them before the end."""


@contextmanager
def measure(name: str, *labels: str) -> Iterator[Watch]:
    """Measure the block. An exception leaves the labels as they are then."""
    watch = Watch(labels)
    if _process is None:
        yield watch
        return
    start = time.monotonic()
    try:
        yield watch
    finally:
        observe(name, time.monotonic() - start, *watch.labels)


def observe(name: str, seconds: float, *labels: str) -> None:
    """Add a duration to a histogram of `DURATIONS`, if this process or the one that it is a fork of serves them."""
    if _process is not None:
        _process.take(name, seconds, labels)


def is_on() -> bool:
    """True if durations are measured."""
    return _process is not None


def begin() -> None:
    """Serve this process's histograms if an address is set. Call it before any fork. Exits with one line if it cannot."""
    global _process  # noqa: PLW0603 - one per process
    address = settings().metrics_address
    if not address or _process is not None:
        return
    host, _, port = address.rpartition(":")
    try:
        _process = _Process(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - the operator's own wish
    except (OSError, ValueError) as error:
        raise SystemExit(f"assent: ASSENT_METRICS_ADDRESS: {address} cannot be used ({error}): name host:port") from None


class _Process:
    """The histograms, the server, and the way from forks to here."""

    def __init__(self, host: str, port: int) -> None:
        from prometheus_client import CollectorRegistry, Histogram, start_http_server

        self._pid = os.getpid()
        registry = CollectorRegistry()
        self._histograms = {
            name: Histogram(name, family.help, labels, buckets=family.bounds, registry=registry)
            for name, (family, labels) in DURATIONS.items()
        }
        self._series: dict[str, set[tuple[str, ...]]] = {name: set() for name in DURATIONS}
        start_http_server(port, host, registry)
        self._here, self._from_forks = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._from_forks.setblocking(False)
        threading.Thread(target=self._receive, name="durations", daemon=True).start()

    def take(self, name: str, seconds: float, labels: tuple[str, ...]) -> None:
        """Add a duration, here or by the socket. A fork waits for nobody: a full socket loses the duration."""
        if os.getpid() == self._pid:
            self._add(name, seconds, labels)
            return
        with suppress(OSError):
            self._from_forks.send(json.dumps([name, seconds, labels]).encode()[:_LONGEST_MESSAGE])

    def _add(self, name: str, seconds: float, labels: tuple[str, ...]) -> None:
        series = self._series[name]
        if labels not in series:
            if len(series) >= MOST_SERIES:
                labels = (OTHERS,) * len(labels)
            series.add(labels)
        self._histograms[name].labels(*labels).observe(seconds)

    def _receive(self) -> None:
        while True:
            message = self._here.recv(_LONGEST_MESSAGE)
            with suppress(ValueError, KeyError, TypeError):  # cut off, or of another release of a fork
                name, seconds, labels = json.loads(message)
                self._add(name, seconds, tuple(labels))


_process: _Process | None = None
