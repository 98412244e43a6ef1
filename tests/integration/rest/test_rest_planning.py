"""Scans planned by the server: the files, deletes and pages that a plan made here has."""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest import Limits, RestSettings
from hms_iceberg.spec.data_types import DateType, LongType, NestedField, TimestamptzType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from tests.support.rest_server import RestServer, served

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "day", DateType()), NestedField(3, "at", TimestamptzType())
)
UTC = dt.timezone.utc
PLAN = "/v1/namespaces/plans/tables/t/plan"
ROUTE = "/v1/namespaces/{namespace}/tables/{table}/plan"
TASKS = "/v1/namespaces/plans/tables/t/tasks"


def rows(start: int) -> pa.Table:
    ids = range(start, start + 10)
    days = [None if each % 5 == 4 else dt.date(1969, 12, 30 + each % 2) for each in ids]
    times = pa.array([dt.datetime(2024, 1, 1, each % 24, tzinfo=UTC) for each in ids], pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array(days), "at": times})


@pytest.fixture(scope="module")
def table(metastore: Any) -> Iterator[Table]:
    """Twelve files of four appends in three partitions, one of them of nulls, and deletes in some."""
    with load_catalog("behind", uri=metastore.uri) as hive:
        hive.create_namespace("plans")
        by_day = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
        made = hive.create_table(
            "plans.t", SCHEMA, partition_spec=by_day, properties={"write.delete.mode": "merge-on-read"}
        )
        for start in range(0, 40, 10):
            made.append(rows(start))
        made.delete("id in (4, 11, 22)")
        yield made


@pytest.fixture(scope="module")
def hive(table: Table) -> Catalog:
    assert table.catalog is not None
    return table.catalog


@pytest.fixture(scope="module")
def answered() -> Counter[str]:
    """How often each route of the server was asked."""
    return Counter()


@pytest.fixture(scope="module")
def server(hive: Catalog, answered: Counter[str]) -> Iterator[RestServer]:
    settings = RestSettings(limits=Limits(plan_page_files=2, plan_part_files=3), server_planning=True)
    with served(hive, settings, observer=lambda method, route, status, _: answered.update([route])) as running:
        yield running


def all_files(server: RestServer, body: dict[str, Any]) -> dict[str, set[str]]:
    """The data files of a plan with their delete files, from all of its pages."""
    answer = server.ask("POST", PLAN, body)
    assert answer.status == 200 and answer.body["status"] == "completed", answer.body
    found: dict[str, set[str]] = {}
    pages = [answer.body]
    while pages:
        page = pages.pop()
        deletes = [each["file-path"] for each in page["delete-files"]]
        assert len(page["file-scan-tasks"]) <= 2
        for task in page["file-scan-tasks"]:
            path = task["data-file"]["file-path"]
            assert path not in found
            found[path] = {deletes[each] for each in task.get("delete-file-references", [])}
        pages += [server.ask("POST", TASKS, {"plan-task": each}).body for each in page["plan-tasks"]]
    return found


@pytest.mark.parametrize(
    ("filter_json", "text"),
    [
        (None, None),
        (True, None),
        ({"type": "false"}, "false"),
        ({"type": "eq", "term": "day", "value": "1969-12-31"}, "day = '1969-12-31'"),
        ({"type": "eq", "term": "day", "value": -1}, "day = '1969-12-31'"),
        ({"type": "is-null", "term": "day"}, "day is null"),
        ({"type": "not", "child": {"type": "is-null", "term": "day"}}, "day is not null"),
        ({"type": "gt-eq", "term": "id", "value": 30}, "id >= 30"),
        ({"type": "in", "term": {"type": "reference", "term": "id"}, "values": [1, 39]}, "id in (1, 39)"),
        (
            {"type": "lt", "term": "at", "value": "2024-01-01T01:00:00+00:00"},
            "at < '2024-01-01T01:00:00+00:00'",
        ),
        (
            {
                "type": "or",
                "left": {"type": "eq", "term": "id", "value": 5},
                "right": {"type": "and", "left": {"type": "true"}, "right": {"type": "lt", "term": "id", "value": 1}},
            },
            "id = 5 or id < 1",
        ),
        (
            {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "at"}, "value": "2023-01-01"},
            "at >= '2023-01-01T00:00:00+00:00' and at < '2023-01-02T00:00:00+00:00'",
        ),
    ],
)
def test_the_pages_of_a_plan_hold_every_file_once_with_its_deletes(
    server: RestServer, table: Table, answered: Counter[str], filter_json: Any, text: str | None
) -> None:
    scan = table.scan(text)
    here = {task.file.file_path: {each.file_path for each in task.delete_files} for task in scan.plan_files()}
    assert all_files(server, {} if filter_json is None else {"filter": filter_json}) == here
    with load_catalog("client", uri=server.url) as client:
        before, mine = answered[ROUTE], client.load_table("plans.t").scan(text)
        planned = list(mine.plan_files())
        assert {each.file.file_path: {one.file_path for one in each.delete_files} for each in planned} == here
        assert [each.residual for each in planned] == [each.residual for each in scan.plan_files()]
        assert mine.to_arrow().sort_by("id").equals(scan.to_arrow().sort_by("id"))
        assert answered[ROUTE] == before + 2


def test_what_the_server_does_not_plan_is_planned_by_the_client(server: RestServer, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    with load_catalog("client", uri=server.url) as client:
        mine = client.load_table("plans.t")
        assert mine.scan(snapshot_id=first).to_arrow().num_rows == 10
        named = mine.scan("_pos = 0", selected_fields=("id", "_file")).to_arrow().sort_by("id")
        assert named.equals(table.scan("_pos = 0", selected_fields=("id", "_file")).to_arrow().sort_by("id"))
        assert mine.scan().count() == 37
    with load_catalog("client", uri=server.url, **{"header.X-Iceberg-Access-Delegation": ""}) as client:
        assert client.load_table("plans.t").scan(limit=3).to_arrow().num_rows == 3


def test_a_plan_tells_the_metrics_of_the_fields_that_were_asked_for(server: RestServer, table: Table) -> None:
    plain = server.ask("POST", PLAN, {}).body["file-scan-tasks"][0]["data-file"]
    assert "value-counts" not in plain and "lower-bounds" not in plain
    pages = [server.ask("POST", PLAN, {"stats-fields": ["id", "day"]}).body]
    files = []
    while pages:
        page = pages.pop()
        files += [each["data-file"] for each in page["file-scan-tasks"]]
        pages += [server.ask("POST", TASKS, {"plan-task": each}).body for each in page["plan-tasks"]]
    for each in files:
        path, count = each["file-path"], each["record-count"]
        ids = pq.ParquetFile(path.removeprefix("file:")).read()["id"].to_pylist()
        low, high = (each[f"{side}-bounds"]["values"][0] for side in ("lower", "upper"))
        assert [struct.unpack("<q", bytes.fromhex(bound))[0] for bound in (low, high)] == [min(ids), max(ids)]
        assert each["value-counts"] == {"keys": [1, 2], "values": [count, count]}
        nulls = count if each["partition"] == [None] else 0
        assert each["null-value-counts"] == {"keys": [1, 2], "values": [0, nulls]}
    assert len(files) == 12


def test_a_plan_is_of_the_snapshot_that_was_asked_for(server: RestServer, table: Table) -> None:
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots()[:2])
    here = {task.file.file_path for task in table.scan(snapshot_id=first).plan_files()}
    assert all_files(server, {"snapshot-id": first}).keys() == here
    both = {task.file.file_path for task in table.scan(snapshot_id=second).plan_files()}
    appended = {"start-snapshot-id": first, "end-snapshot-id": second}
    page = server.ask("POST", PLAN, appended)
    assert {each["data-file"]["file-path"] for each in page.body["file-scan-tasks"]} <= both - here
    assert len(all_files(server, appended)) == len(both - here)


def test_a_plan_has_no_more_files_than_hold_the_rows_that_a_client_asks_for(server: RestServer) -> None:
    everything = all_files(server, {})
    alone = [path for path, deletes in everything.items() if not deletes]
    for wanted in (1, 3, 4, 7, 10**6):
        for filter_json in ({}, {"filter": True}):
            found = all_files(server, {"min-rows-requested": wanted, **filter_json})
            rows = [pq.read_metadata(path.removeprefix("file:")).num_rows for path in found if path in alone]
            assert found == everything or sum(rows) >= wanted > sum(rows[:-1])
    assert len(all_files(server, {"min-rows-requested": 1})) < 3 < len(everything)
    condition = {"type": "gt-eq", "term": "id", "value": 30}
    of_filter = all_files(server, {"filter": condition})
    assert all_files(server, {"filter": condition, "min-rows-requested": 1}) == of_filter and len(of_filter) > 2


def test_rows_of_files_with_deletes_are_not_counted_for_those_that_a_client_asks_for(
    server: RestServer, hive: Catalog
) -> None:
    made = hive.create_table("plans.deleted", SCHEMA, properties={"write.delete.mode": "merge-on-read"})
    for start in (0, 10):
        made.append(rows(start))
    made.delete("id in (1, 11)")
    planned = server.ask("POST", PLAN.replace("/t/", "/deleted/"), {"min-rows-requested": 5}).body["file-scan-tasks"]
    assert len(planned) == 2 and all(each["delete-file-references"] for each in planned)


def test_columns_are_those_of_the_table_or_of_the_snapshot_whichever_a_client_means(
    server: RestServer, hive: Catalog
) -> None:
    made = hive.create_table("plans.changed", pa.schema([("id", pa.int64()), ("n", pa.int32()), ("old", pa.int32())]))
    made.append(pa.table({"id": pa.array([1]), "n": pa.array([5], pa.int32()), "old": pa.array([1], pa.int32())}))
    made.append(pa.table({"id": pa.array([2]), "n": pa.array([6], pa.int32()), "old": pa.array([2], pa.int32())}))
    with made.update_schema() as change:
        change.delete_column("n")
        change.rename_column("id", "key")
        change.update_column("old", LongType())
    with made.update_schema() as change:
        change.add_column("n", "int")

    def planned(condition: Any, *stats: str, **body: Any) -> list[dict[str, Any]]:
        asked = {"snapshot-id": made.snapshots()[-1].snapshot_id, "filter": condition, "stats-fields": list(stats)}
        answer = server.ask("POST", PLAN.replace("/t/", "/changed/"), {**asked, **body})
        assert answer.status == 200, answer.body
        return list(answer.body["file-scan-tasks"])

    for uses_snapshots in (True, False):
        told = {"use-snapshot-schema": uses_snapshots, "select": ["key", "id", "n", "_file", "_partition.x"]}
        for name in ("id", "key"):
            assert len(planned({"type": "eq", "term": name, "value": 2}, **told)) == 1
        assert planned({"type": "gt", "term": "old", "value": 10**10}, **told) == []
        is_null = {"type": "is-null", "term": "n"}  # now a column without values, then one without nulls
        for condition in (is_null, {"type": "starts-with", "term": "_file", "value": "s3:"}):
            assert [task["residual-filter"] for task in planned(condition, **told)] == [condition] * 2
        (file,) = (task["data-file"] for task in planned({"type": "eq", "term": "key", "value": 1}, "n", "old", **told))
        assert file["value-counts"]["keys"] == [3]
    answer = server.ask("POST", PLAN.replace("/t/", "/changed/"), {"select": ["_none"]})
    assert answer.status == 400


def test_a_plan_tells_what_the_lineage_of_rows_needs(server: RestServer, hive: Catalog) -> None:
    made = hive.create_table("plans.lineage", SCHEMA, properties={"format-version": "3"})
    for start in (0, 10):
        made.append(rows(start))
    tasks = server.ask("POST", PLAN.replace("/t/", "/lineage/"), {}).body["file-scan-tasks"]
    files = (task["data-file"] for task in tasks)
    assert sorted((file["first-row-id"], file["data-sequence-number"]) for file in files) == [(0, 1), (10, 2)]
    told = server.ask("GET", PLAN.replace("/t/plan", "/lineage")).body["config"]
    assert told["scan-planning-mode"] == "client", "there are clients that would lose it"


def test_a_plan_is_kept_until_it_is_cancelled(server: RestServer, hive: Catalog) -> None:
    made = server.ask("POST", PLAN, {}).body
    again = server.ask("GET", f"{PLAN}/{made['plan-id']}").body
    assert again["file-scan-tasks"] == made["file-scan-tasks"]
    hive.create_table("plans.other", SCHEMA)
    elsewhere = PLAN.replace("/t/", "/other/")
    assert server.ask("GET", f"{elsewhere}/{made['plan-id']}").error == "NoSuchPlanIdException"
    task = {"plan-task": made["plan-tasks"][0]}
    assert server.ask("POST", TASKS.replace("/t/", "/other/"), task).error == "NoSuchPlanTaskException"
    assert server.ask("DELETE", f"{elsewhere}/{made['plan-id']}").status == 204
    assert server.ask("POST", TASKS, task).status == 200
    assert server.ask("DELETE", f"{PLAN}/{made['plan-id']}").status == 204
    assert server.ask("POST", TASKS, task).error == "NoSuchPlanTaskException"
    assert server.ask("GET", f"{PLAN}/{made['plan-id']}").error == "NoSuchPlanIdException"


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"type": "explode"}},
        {"filter": {"type": "eq", "term": "none", "value": 1}},
        {"filter": {"type": "eq", "term": "id"}},
        {"filter": {"type": "eq", "term": "id", "value": None}},
        {"filter": {"type": "eq", "term": "day", "value": "yesterday"}},
        {"filter": {"type": "in", "term": "id", "values": 5}},
        {"snapshot-id": 5},
        {"snapshot-id": "x"},
        {"start-snapshot-id": 5},
        {"select": ["none"]},
        {"min-rows-requested": -1},
    ],
)
def test_what_cannot_be_planned_is_refused(server: RestServer, body: dict[str, Any]) -> None:
    answer = server.ask("POST", PLAN, body)
    assert answer.status == 400 and answer.error


def test_a_filter_that_is_nested_too_deep_is_refused(server: RestServer) -> None:
    deep: Any = {"type": "true"}
    for _ in range(300):
        deep = {"type": "not", "child": deep}
    assert server.ask("POST", PLAN, {"filter": deep}).status == 400


def test_clients_are_told_to_have_scans_planned_here(server: RestServer) -> None:
    told = server.ask("GET", "/v1/namespaces/plans/tables/t").body["config"]
    assert told["scan-planning-mode"] == "server"
    assert server.ask("GET", "/v1/config").body["defaults"] == {"scan-planning-mode": "server"}
