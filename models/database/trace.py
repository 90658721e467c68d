"""Traces in OpenTelemetry's sense: which request caused a run, and the spans that a transaction ends.

A run is everything that a thread does from a message until it rests. Its place in a trace follows from its thread and its start, so
that every process knows it without asking. `models.operate.metrics.spans` sends spans to a collector.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from models.settings import settings

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.ASCII)

Attributes = Mapping[str, str | int | float | bool | list[str]]


class Place(NamedTuple):
    """A span's place: the W3C header `traceparent` names it."""

    trace_id: int
    span_id: int
    sampled: bool

    @classmethod
    def of(cls, traceparent: str) -> "Place | None":
        """Return the place that the header names; None if it names none."""
        match = _TRACEPARENT.fullmatch(traceparent[:100])
        return cls(int(match[1], 16), int(match[2], 16), bool(int(match[3], 16) & 1)) if match else None

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


cause: ContextVar[Place | None] = ContextVar("cause", default=None)
"""The span on whose behalf this thread or greenlet works: of a client's request, or of the run that a worker goes on with."""


@dataclass(frozen=True)
class Span:
    """A span that has ended. Times are in seconds since 1970."""

    name: str
    place: Place
    parent: Place | None
    start: float
    end: float
    attributes: Attributes
    links: tuple[Place, ...] = ()
    is_client: bool = False
    """True for a request to another system."""
    error: str = ""
    """The kind of the error; empty without one."""
    own_trace: bool = False
    """True if no request's trace holds it, so that this installation decides whether it is sampled."""


@dataclass(frozen=True)
class Run:
    """A run's span, which begins with the run and ends with it."""

    place: Place
    parent: Place | None
    """The request that caused the run, if it had a trace."""
    start: float

    @staticmethod
    def begin(now: datetime) -> dict[str, Any] | None:
        """Return what a thread keeps of a run that begins now; None if nobody traces it."""
        request = cause.get()
        if request is None and not is_on():
            return None
        return {"start": now.timestamp()} | ({"parent": str(request)} if request else {})

    @classmethod
    def of(cls, thread_id: str, facts: Mapping[str, Any] | None) -> "Run | None":
        """Return the run from what its thread keeps; None if nothing is sent anywhere."""
        if facts is None or not is_on():
            return None
        start: float = facts["start"]
        digest = hashlib.sha256(f"{thread_id} {start}".encode()).digest()
        parent = Place.of(facts.get("parent", ""))
        trace_id = parent.trace_id if parent else int.from_bytes(digest[:16])
        place = Place(trace_id, int.from_bytes(digest[16:24]) or 1, parent.sampled if parent else True)
        return cls(place, parent, start)

    def whole(self, name: str, end: float, attributes: Attributes, error: str = "") -> Span:
        """Return the run's own span."""
        return Span(name, self.place, self.parent, self.start, end, attributes, error=error, own_trace=self.parent is None)

    def part(self, name: str, start: float, end: float, attributes: Attributes, **more: Any) -> Span:
        """Return a span within the run. `more`: `links`, `is_client` and `error` of `Span`."""
        place = self.place._replace(span_id=secrets.randbits(64) or 1)
        return Span(name, place, self.place, start, end, attributes, own_trace=self.parent is None, **more)


present: ContextVar[Run | None] = ContextVar("present", default=None)
"""The run that this thread or greenlet of a worker goes on with."""


@contextmanager
def going_on(run: Run | None) -> Iterator[None]:
    """Have the block work for a run. What it causes is part of the run's trace."""
    if run is None:
        yield
        return
    tokens = present.set(run), cause.set(run.place)
    try:
        yield
    finally:
        present.reset(tokens[0])
        cause.reset(tokens[1])


def is_on() -> bool:
    """True if spans are sent to a collector."""
    return bool(settings().otlp_endpoint)
