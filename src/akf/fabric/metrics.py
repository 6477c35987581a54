"""Figures of a worker, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from akf.fabric.interface import OUTCOMES
from akf.fabric.local import LocalWorker

_OPERATIONS = ("verify", "profile", "profile_single_task", "generate_reference")


class _Figures(Collector):
    def __init__(self, worker: LocalWorker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        worker = self._worker
        busy = worker.pool.busy()
        devices = GaugeMetricFamily("akf_worker_devices", "Devices by state.", labels=["state"])
        devices.add_metric(["free"], len(worker.pool.devices) - busy.total())
        for state in ("lent", "running", "returning"):
            devices.add_metric([state], busy[state])
        yield devices
        yield GaugeMetricFamily("akf_worker_waiting", "Who waits for a device.", worker.pool.waiting)
        yield GaugeMetricFamily("akf_worker_jobs", "Packages that wait or run.", len(worker.running))
        yield GaugeMetricFamily("akf_worker_draining", "Whether it takes nothing more.", int(worker.pool.draining))
        done = CounterMetricFamily("akf_worker_operations", "Operations by outcome.", labels=["operation", "outcome"])
        seconds = CounterMetricFamily("akf_worker_operation_seconds", "Time of all operations.", labels=["operation"])
        for operation in _OPERATIONS:
            seconds.add_metric([operation], worker.seconds.get(operation, 0.0))
            for outcome in OUTCOMES:
                done.add_metric([operation, outcome], worker.outcomes[operation, outcome])
        yield done
        yield seconds
        events = CounterMetricFamily("akf_worker_leases", "Leases by what became of them.", labels=["event"])
        for event in ("granted", "released", "reclaimed"):
            events.add_metric([event], worker.lease_events[event])
        yield events


def rendered(worker: LocalWorker) -> tuple[bytes, str]:
    """The figures now, and their media type."""
    registry = CollectorRegistry()
    registry.register(_Figures(worker))
    return generate_latest(registry), CONTENT_TYPE_LATEST
