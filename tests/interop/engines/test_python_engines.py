"""Engines that come with pip read what we write, and filter it by our metrics, as ENGINES.md says."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from tests.interop.engines.engines import PYTHON_ENGINES, PythonEngine, Worker
from tests.interop.engines.filters import filtered
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import NUMBERED, Written, arrow, as_json, numbered
from tests.support.maven import UnavailableError
from tests.support.peer_rows import arrow_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def question(table: Table, uri: str) -> dict[str, str]:
    """What a worker is asked to read a table."""
    return {
        "metadata": table.metadata_location,
        "name": ".".join(table.name()),
        "uri": uri,
        "schema": base64.b64encode(table.schema().as_arrow().serialize()).decode(),
    }


def test_we_read_every_table_that_engines_are_given(catalog: Catalog, written: list[Written]) -> None:
    read = {each.case.title: tuple(arrow_rows(catalog.load_table(each.name).scan().to_arrow())) for each in written}
    assert read == {each.case.title: each.rows for each in written}


@pytest.mark.parametrize("engine", PYTHON_ENGINES, ids=lambda engine: engine.title)
def test_an_engine_reads_what_we_write_as_documented(
    catalog: Catalog, metastore: Any, written: list[Written], engine: PythonEngine
) -> None:
    try:
        worker = Worker(engine)
    except UnavailableError as error:
        pytest.skip(str(error))
    outcomes, seen = {}, {}
    with worker:
        for each in written:
            asked = question(catalog.load_table(each.name), metastore.uri)
            answer = worker.ask(asked)
            key = (each.case.feature, each.case.variant)
            outcomes[key] = outcome(each, answer.get("columns"), answer.get("rows"))
            seen[each.case.title] = answer.get("error") or [
                pair for pair in zip(each.rows, answer["rows"], strict=False) if pair[0] != pair[1]
            ]
            if outcomes[key] == "yes":
                outcomes |= filtered(each, lambda where, asked=asked: worker.ask({**asked, "where": where}).get("rows"))
    said = documented(engine.title)
    shown = {feature: cell for feature, cell in cells(outcomes).items() if said.get(feature) != cell}
    assert shown == {}, {title: seen[title] for title in seen if title.rpartition(", ")[0] in shown}


WRITERS = [engine for engine in PYTHON_ENGINES if engine.module in ("polars", "pyiceberg", "daft")]


@pytest.mark.parametrize("engine", WRITERS, ids=lambda engine: engine.title)
def test_we_go_on_with_what_an_engine_appends(
    catalog: Catalog, metastore: Any, namespace: str, engine: PythonEngine
) -> None:
    by_name = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table(f"{namespace}.t", NUMBERED, partition_spec=by_name)
    table.append(arrow(table, numbered(0, 5)))

    def append(start: int, stop: int) -> None:
        sink = pa.BufferOutputStream()
        rows = arrow(table, numbered(start, stop))
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        encoded = base64.b64encode(sink.getvalue()).decode()
        answer = worker.ask({"name": f"{namespace}.t", "uri": metastore.uri, "append": encoded})
        assert "error" not in answer, answer

    try:
        worker = Worker(engine)
    except UnavailableError as error:
        pytest.skip(str(error))
    with worker:
        append(5, 20)
        table.refresh().delete("id in (3, 7)")
        append(20, 23)
        kept = as_json([row for row in numbered(0, 23) if row["id"] not in (3, 7)])
        assert tuple(arrow_rows(table.refresh().scan().to_arrow())) == kept
        assert tuple(worker.ask(question(table, metastore.uri))["rows"]) == kept
