"""Sends spans to a collector of OpenTelemetry, by OTLP over HTTP. Without OTEL_EXPORTER_OTLP_ENDPOINT nothing is imported or sent.

A thread of this process sends them in batches. A collector that is away delays nobody: spans are lost then. No span holds a prompt,
an input, a result or a text of a person, unless a setting says so (`models.operate.metrics.contents`).
"""

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from models.database import trace
from models.database.trace import Attributes, Place, Span

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

log = logging.getLogger(__name__)


@dataclass
class Recording:
    """A span that is under way. Whoever does its work adds attributes, and the kind of an error."""

    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@contextmanager
def record(operation: str, target: str, about: Attributes, *, is_client: bool = False) -> Iterator[Recording]:
    """Record the block as a span of the run that this worker goes on with. No-op without a run."""
    recording = Recording(f"{operation} {target}")
    run = trace.present.get()
    if run is None:
        yield recording
        return
    recording.attributes = {"gen_ai.operation.name": operation, **about}
    start = time.time()
    try:
        yield recording
    except Exception as error:
        recording.error = recording.error or type(error).__name__
        raise
    finally:
        values = recording.attributes
        export([run.part(recording.name, start, time.time(), values, is_client=is_client, error=recording.error)])


def check() -> None:
    """Exit with one line if a collector is configured and OpenTelemetry is not installed."""
    if trace.is_on() and find_spec("opentelemetry.exporter") is None:
        raise SystemExit(
            "assent: OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed: "
            "install assent-server[tracing], or unset it"
        )


def export(spans: Iterable[Span]) -> None:
    """Hand spans to the thread that sends them. Never raises: what they tell of has happened."""
    for span in spans:
        try:
            _sender().send(span)
        except Exception as error:  # noqa: BLE001 - only the span is missing
            log.warning("a span was not sent (%s)", type(error).__name__)


def flush() -> None:
    """Send what waits, before this process ends."""
    if trace.is_on() and _sender.cache_info().currsize:
        _sender().provider.force_flush(5000)


class _Sender:
    """OpenTelemetry's tracer, which takes the ids that a span already has."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import IdGenerator

        ids = self

        class Ids(IdGenerator):
            """Gives the ids of the span that is being sent."""

            def generate_span_id(self) -> int:
                return ids.next.span_id

            def generate_trace_id(self) -> int:
                return ids.next.trace_id

        self.next = Place(1, 1, True)
        self._lock = threading.Lock()
        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "assent"}
        self.provider = TracerProvider(resource=Resource.create(name), id_generator=Ids())
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self.provider.get_tracer("assent")

    def send(self, span: Span) -> None:
        """Make the span, end it, and queue it."""
        from opentelemetry import trace as otel
        from opentelemetry.context import Context

        parent = None
        if span.parent is not None:
            sampled = self._samples(span.parent.trace_id) if span.own_trace else span.parent.sampled
            parent = otel.set_span_in_context(otel.NonRecordingSpan(_context(span.parent._replace(sampled=sampled))))
        with self._lock:
            self.next = span.place
            new = self._tracer.start_span(
                span.name,
                context=parent or Context(),
                kind=otel.SpanKind.CLIENT if span.is_client else otel.SpanKind.INTERNAL,
                attributes=dict(span.attributes) | ({"error.type": span.error} if span.error else {}),
                links=[otel.Link(_context(link)) for link in span.links],
                start_time=round(span.start * 1e9),
            )
        if span.error:
            new.set_status(otel.StatusCode.ERROR)
        new.end(round(span.end * 1e9))

    def _samples(self, trace_id: int) -> bool:
        """True if a trace of our own is sampled. By its id, so that each process decides alike."""
        from opentelemetry.sdk.trace.sampling import Decision

        decision = self.provider.sampler.should_sample(None, trace_id, "invoke_agent").decision
        return decision is Decision.RECORD_AND_SAMPLE


def _context(place: Place) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(place.trace_id, place.span_id, is_remote=True, trace_flags=TraceFlags(int(place.sampled)))


@cache
def _sender() -> _Sender:
    """Return this process's sender."""
    return _Sender()
