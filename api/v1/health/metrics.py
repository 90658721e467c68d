"""Metrics of the whole installation for operators, in the text format of Prometheus."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from api.door import auth
from api.door.routes import METRICS, Door, opens
from models.operate.metrics.families import FAMILIES, Family
from models.operate.metrics.reading import Sample, read
from models.settings import settings

metrics = Blueprint("metrics", __name__)


@metrics.get("/metrics")
@opens(Door(scopes=("metrics",), media_type=METRICS))
def show() -> Response:
    """Show what waits, and the sums since the installation, of all workspaces, in the text format of Prometheus.

    Configure an API key with the scope `metrics` as the scraper's bearer token. A process reads the database at most once in
    ASSENT_METRICS_SECONDS.
    """
    auth.authenticate("metrics")
    registry = CollectorRegistry()
    registry.register(_Collector(_latest.samples(auth.secret())))
    return Response(generate_latest(registry), content_type=f"{METRICS}; version=0.0.4; charset=utf-8")


class _Latest:
    """The samples that this process read last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._samples: list[Sample] = []

    def samples(self, secret: str) -> list[Sample]:
        """Return the samples, read anew for this key if they are too old."""
        with self._lock:
            if time.monotonic() - self._read_at >= settings().metrics_seconds:
                self._samples, self._read_at = read(secret), time.monotonic()
            return self._samples


_latest = _Latest()


class _Collector(Collector):
    """Passes samples to prometheus_client. A sample without a family is of a newer release, and left out."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples: defaultdict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._samples[sample.name].append(sample)

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its samples."""
        for name, family in FAMILIES.items():
            metric: Metric
            match family.kind:
                case "gauge":
                    metric = GaugeMetricFamily(name, family.help)
                case "counter":
                    metric = CounterMetricFamily(name.removesuffix("_total"), family.help)
                case "histogram":
                    yield self._histogram(name, family.help, family.bounds)
                    continue
            for labels, value in self._with_zeros(name, family):
                metric.add_sample(name, labels, value)
            yield metric

    def _with_zeros(self, name: str, family: Family) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the labels and values of a metric, and its zeros of which there is no sample."""
        samples = [(sample.labels, sample.value) for sample in self._samples[name]]
        workspaces = [sample.labels for sample in self._samples["assent_audit_alarm"]] if family.of_workspaces else [{}]
        zeros = [workspace | labels for workspace in workspaces for labels in family.zeros]
        present = [labels for labels, _ in samples]
        yield from samples
        yield from ((labels, 0.0) for labels in zeros if labels not in present)

    def _histogram(self, name: str, meaning: str, bounds: tuple[float, ...]) -> Metric:
        metric = HistogramMetricFamily(name, meaning)
        counts: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for sample in self._samples[f"{name}_bucket"]:
            labels = {key: value for key, value in sample.labels.items() if key != "le"}
            counts[repr(sorted(labels.items()))][sample.labels["le"]] = sample.value
        for _name, labels, total in self._samples[f"{name}_sum"]:
            number = 0.0
            for le in (*map(str, map(float, bounds)), "+Inf"):
                number += counts[repr(sorted(labels.items()))].get(le, 0)
                metric.add_sample(f"{name}_bucket", labels | {"le": le}, number)
            metric.add_sample(f"{name}_count", labels, number)
            metric.add_sample(f"{name}_sum", labels, total)
        return metric
