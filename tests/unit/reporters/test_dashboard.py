"""Every query of the Grafana dashboard is one, and asks for metrics that are told, by labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hms_iceberg.maintenance.service.metrics import ServiceMetrics
from hms_iceberg.maintenance.service.service import RunReport, Step
from hms_iceberg.reporters.prometheus import EventMetrics, TableMetrics
from hms_iceberg.reports import CommitReport, MetastoreCall, MigrationReport

prometheus = pytest.importorskip("prometheus_client")
promql_parser = pytest.importorskip("promql_parser")
DASHBOARD = Path(__file__).parents[3] / "docker" / "grafana" / "hms_iceberg.json"
OF_REST = {"hms_iceberg_rest_request_seconds": {"method", "route", "status", "le"}}


def queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_a_query_with_a_slip_is_none() -> None:
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        promql_parser.parse("sum(rate(a[1m])")


def test_panels_lie_beside_each_other() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in (each["gridPos"] for each in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert len({each["id"] for each in panels}) == len(panels)


def known() -> dict[str, set[str]]:
    """The labels of each metric, by its name without what Prometheus adds to it."""
    registry = prometheus.CollectorRegistry()
    tables, service, events = TableMetrics(registry), ServiceMetrics(registry), EventMetrics(registry)
    events(MetastoreCall("get_table_req", "answered", 0.1))
    events(MigrationReport("t", "in place", "made", 1.0))
    tables(CommitReport("t", "made", 1, 1.0, operation="append", summary={"added-files-size": "1"}))
    service.step(Step("t", "rewrite_data_files", "", "done"))
    service.report(RunReport(1, ()))
    found = {metric.name: set().union(*(sample.labels for sample in metric.samples)) for metric in registry.collect()}
    return {**found, "hms_iceberg_planning_files": {"result"}, "hms_iceberg_planning_manifests": {"result"}, **OF_REST}


@pytest.mark.parametrize("query", queries())
def test_a_query_asks_for_what_is_told(query: str) -> None:
    promql_parser.parse(query.replace("$__rate_interval", "1m"))
    metrics = known()
    names = {re.sub(r"_(total|bucket|sum|count)$", "", each) for each in re.findall(r"hms_iceberg_\w+", query)}
    assert names and names <= metrics.keys()
    labels = set(re.findall(r"(\w+)!?=", query)) | set(
        re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query)))
    )
    assert labels <= set().union(*(metrics[name] for name in names))
