"""Rows that are older than a policy keeps them are deleted: those, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.maintenance import check_table, system_table
from hms_iceberg.maintenance.service.service import MaintenanceService, RunReport
from hms_iceberg.maintenance_policy import Policies
from hms_iceberg.report import portrait_of
from hms_iceberg.spec import table_properties
from hms_iceberg.spec.data_types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from hms_iceberg.spec.transforms.transform import Transform
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path

NOW = datetime(2026, 3, 10, 15, 30, tzinfo=timezone.utc)
_QUIET = {"maintenance.remove-orphans": "false", "maintenance.compact": "false"}
_RETAIN = {"hms_iceberg.retain.column": "seen", "hms_iceberg.retain.age": "7d"}
_TIMES = [
    *(datetime(2026, 3, day, hour, 30) for day in (1, 2, 3, 4) for hour in (0, 12, 23)),
    *(datetime(2026, 2, 28, 23, 59, 59, 999_999), datetime(2026, 3, 3), datetime(2026, 3, 2, 23, 59, 59, 999_999)),
    *(datetime(2024, 5, 6), datetime(1969, 12, 31, 23), datetime(2026, 3, 10, 15), datetime(2031, 1, 1)),
]


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    """A catalog in a folder, with a namespace."""
    found = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    found.create_namespace("web")
    return found


def make(
    catalog: Any, kind: IcebergType, transform: Transform | None = None, values: Any = None, **properties: str
) -> Table:
    """A table of two files a partition with rows at all of the times, and a row of no time in each of them."""
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "seen", kind), NestedField(3, "text", StringType())
    )
    spec = PartitionSpec(*([PartitionField(2, 1000, transform, "part")] if transform else []))
    given = _QUIET | _RETAIN | properties
    table = catalog.create_table("web.visits", schema, partition_spec=spec, properties=given)
    for half in (0, 1):
        times = _TIMES[half::2]
        at = pa.array(
            [None, *(times if values is None else map(values, times))], table.schema().as_arrow().field("seen").type
        )
        ids = range(100 * half, 100 * half + len(at))
        table.append(pa.table({"id": ids, "seen": at, "text": [f"row {each}" for each in ids]}))
    return table


def run(catalog: Any, now: datetime = NOW, dry_run: bool = False) -> RunReport:
    """A run of the service at a time."""
    return MaintenanceService(catalog, clock=now.timestamp).run(dry_run)


def whole(table: Table) -> pa.Table:
    """All rows of main."""
    rows = table.refresh().scan().to_arrow()
    return rows.sort_by(rows.column_names[0])


def kept_by_duckdb(rows: pa.Table, condition: str) -> pa.Table:
    """The rows that are of no time, or that match a condition."""
    ids = duckdb.sql(f"select id from rows where seen is null or {condition}").to_arrow_table()["id"]
    return rows.filter(pc.is_in(rows["id"], value_set=ids.combine_chunks()))


@pytest.mark.parametrize(
    ("kind", "transform", "begin", "settings"),
    [
        (DateType(), None, "2026-03-03", {"write.format.default": "orc", "format-version": "1"}),
        (DateType(), IdentityTransform(), "2026-03-03", {}),
        (DateType(), MonthTransform(), "2026-03-01", {"write.format.default": "avro"}),
        (TimestampType(), None, "2026-03-03", {"write.delete.mode": "merge-on-read"}),
        (TimestampType(), DayTransform(), "2026-03-03", {"format-version": "3", "write.format.default": "orc"}),
        (TimestampType(), YearTransform(), "2026-01-01", {}),
        (TimestampType(), MonthTransform(), "2026-03-03", {"hms_iceberg.retain.whole-partitions": "false"}),
        (TimestampType(), HourTransform(), "2026-03-02 03:00", {"hms_iceberg.retain.age": "204h"}),
        (
            TimestampType(),
            BucketTransform(4),
            "2026-03-03",
            {"write.delete.mode": "merge-on-read", "format-version": "3"},
        ),
        (TimestamptzType(), None, "2026-03-03", {"write.format.default": "avro", "write.delete.mode": "merge-on-read"}),
        (TimestamptzType(), None, "2026-03-02 23:00", {"hms_iceberg.time-zone": "Europe/Berlin"}),
        (TimestamptzType(), DayTransform(), "2026-03-02", {"hms_iceberg.time-zone": "Europe/Berlin"}),
        (TimestampType(), None, "2026-03-03", {"hms_iceberg.time-zone": "Europe/Berlin"}),
        (TimestampNanoType(), MonthTransform(), "2026-03-01", {"format-version": "3"}),
        (TimestamptzNanoType(), None, "2026-03-03", {"format-version": "3", "write.delete.mode": "merge-on-read"}),
        (LongType(), None, "2026-03-03", {"hms_iceberg.retain.unit": "ms"}),
        (LongType(), TruncateTransform(86400 * 10), "2026-03-03", {"hms_iceberg.retain.unit": "s"}),
        (
            LongType(),
            IdentityTransform(),
            "2026-03-03",
            {"hms_iceberg.retain.unit": "us", "write.format.default": "orc"},
        ),
        (LongType(), None, "2026-03-03", {"hms_iceberg.retain.unit": "ns"}),
        (IntegerType(), None, "2026-03-03", {"hms_iceberg.retain.unit": "s"}),
    ],
    ids=str,
)
def test_the_rows_that_stay_are_those_that_duckdb_finds_young_enough(
    catalog: Any, kind: IcebergType, transform: Transform | None, begin: str, settings: dict[str, str]
) -> None:
    unit = settings.get("hms_iceberg.retain.unit")
    of_second = {None: 0, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    first = datetime.fromisoformat(begin)
    cast = "::timestamptz" if isinstance(kind, TimestamptzNanoType) else ""
    condition = f"epoch_us(seen{cast}) >= epoch_us(timestamp '{begin}')"
    values: Callable[[datetime], Any] | None = None
    if unit:

        def values(each: datetime) -> int:
            return (each - datetime(1970, 1, 1)) // timedelta(microseconds=1) * of_second // 10**6

        condition = f"seen >= {values(first)}"
        if isinstance(transform, TruncateTransform):
            condition = f"seen >= {values(first) // transform.width * transform.width}"
    table = make(catalog, kind, transform, values, **settings)
    before = whole(table)
    expected = kept_by_duckdb(before, condition)
    assert 2 < expected.num_rows < before.num_rows
    planned = run(catalog, dry_run=True)
    assert [(step.action, step.outcome) for step in planned.steps] == [("delete_old_rows", "planned")]
    assert whole(table) == before
    done = run(catalog)
    assert [(step.action, step.outcome) for step in done.steps] == [("delete_old_rows", "done")]
    assert whole(table).equals(expected)
    assert check_table(table).findings == ()
    snapshots = len(table.refresh().snapshots())
    assert run(catalog, dry_run=True).steps == () and run(catalog).steps == ()
    assert len(table.refresh().snapshots()) == snapshots
    is_by_partition = transform is not None and not isinstance(transform, BucketTransform)
    if is_by_partition and "hms_iceberg.retain.whole-partitions" not in settings:
        summary = table.current_snapshot().summary
        assert (
            summary.operation == "delete" and "added-data-files" not in summary and "added-delete-files" not in summary
        )


def test_old_rows_that_come_late_go_too_and_what_has_none_is_read_once(catalog: Any) -> None:
    table = make(catalog, TimestampType(), **{"write.delete.mode": "merge-on-read"})
    assert len(run(catalog).steps) == 1
    assert len(table.refresh().scan().plan().files) == 2  # their metrics still tell of old rows
    assert run(catalog).steps == ()
    late = whole(table).slice(0, 1).set_column(1, "seen", pa.array([datetime(2025, 1, 1)], pa.timestamp("us")))
    table.append(pa.concat_tables([late] * 2))
    assert [step.outcome for step in run(catalog).steps] == ["done"]
    assert pc.min(whole(table)["seen"]).as_py() == datetime(2026, 3, 3)
    assert [step.action for step in run(catalog, NOW + timedelta(days=1)).steps] == ["delete_old_rows"]
    assert pc.min(whole(table)["seen"]).as_py() == datetime(2026, 3, 4, 0, 30)
    before = table.refresh().current_snapshot()
    table.append(whole(table).slice(0, 1))
    assert [step.result for step in run(catalog, NOW + timedelta(days=1)).steps] == [
        "no row is before 2026-03-04T00:00:00"
    ]
    assert run(catalog, NOW + timedelta(days=1)).steps == ()
    assert table.refresh().current_snapshot().parent_snapshot_id == before.snapshot_id


def test_the_age_of_a_field_of_a_struct_counts_and_branches_keep_their_rows(catalog: Any) -> None:
    inner = StructType(NestedField(3, "at", TimestampType()))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "event", inner))
    given = _QUIET | {"hms_iceberg.retain.column": "event.at", "hms_iceberg.retain.age": "1d"}
    table = catalog.create_table("web.events", schema, properties=given)
    times = [{"at": datetime(2026, 3, 1)}, {"at": datetime(2026, 3, 10)}, {"at": None}, None]
    table.append(pa.table({"id": range(4), "event": pa.array(times, table.schema().as_arrow().field("event").type)}))
    table.manage_snapshots().create_branch(None, "other").commit()
    run(catalog)
    assert whole(table)["id"].to_pylist() == [1, 2, 3]
    assert table.scan().use_ref("other").to_arrow().num_rows == 4


def test_a_unit_by_which_all_rows_would_be_ancient_is_refused(catalog: Any) -> None:
    table = make(catalog, LongType(), None, lambda each: int(each.timestamp()), **{"hms_iceberg.retain.unit": "ms"})
    before = table.metadata_location
    (step,) = run(catalog).steps
    assert step.outcome == "failed"
    assert all(
        each in step.result for each in ("ConfigurationError", "web.visits", "hms_iceberg.retain.unit=ms", "1990")
    )
    assert table.refresh().metadata_location == before


_WRONG = [
    ({"hms_iceberg.retain.colum": "seen"}, "hms_iceberg.retain.colum"),
    ({"hms_iceberg.retian.age": "7d"}, "Did you mean hms_iceberg.retain.age"),
    ({"hms_iceberg.retain.age": "-7d"}, "hms_iceberg.retain.age .*age above 0 such as 90d.*'-7d'"),
    ({"hms_iceberg.retain.age": "0d"}, "hms_iceberg.retain.age"),
    ({"hms_iceberg.retain.age": "7"}, "hms_iceberg.retain.age"),
    ({"hms_iceberg.retain.age": "999999999999d"}, "hms_iceberg.retain.age"),
    ({"hms_iceberg.retain.column": "sean"}, "hms_iceberg.retain.column=sean.*seen"),
    ({"hms_iceberg.retain.column": "text"}, "hms_iceberg.retain.column=text.*of type string"),
    ({"hms_iceberg.retain.column": "id"}, "hms_iceberg.retain.column=id.*hms_iceberg.retain.unit"),
    ({"hms_iceberg.retain.unit": "s"}, "hms_iceberg.retain.unit=s is for numbers"),
    ({"hms_iceberg.retain.unit": "min"}, "hms_iceberg.retain.unit.*s, ms, us, ns"),
    ({"hms_iceberg.tags.daily": "-1"}, "hms_iceberg.tags.daily.*whole number"),
    ({"hms_iceberg.tags.weekly": "1"}, "hms_iceberg.tags.weekly"),
    ({"hms_iceberg.branches.unused-age": "soon"}, "hms_iceberg.branches.unused-age"),
    ({"hms_iceberg.time-zone": "Mars/Olympus"}, "hms_iceberg.time-zone.*Europe/Berlin"),
    ({"hms_iceberg.time-zone": "../etc/passwd"}, "hms_iceberg.time-zone"),
]


_BY_COLUMNS = ("hms_iceberg.retain.column", "hms_iceberg.retain.unit=s")
_ALONE = [each for each in _WRONG if not each[1].startswith(_BY_COLUMNS)]
_ALONE += [
    ({"maintenance.compact-min-files": "many"}, "a whole number"),
    ({"maintenance.compat": "true"}, "Did you mean"),
]


@pytest.mark.parametrize(("settings", "message"), _ALONE)
def test_what_is_wrong_by_itself_is_refused_when_it_is_set(
    catalog: Any, settings: dict[str, str], message: str
) -> None:
    table = make_other(catalog)
    before = table.metadata_location
    with pytest.raises(ConfigurationError, match=message):
        table.set_properties(settings)
    with pytest.raises(ConfigurationError, match=message):
        catalog.create_table("web.new", table.schema(), properties=settings)
    assert table.refresh().metadata_location == before and not catalog.table_exists("web.new")


def test_a_wrong_policy_is_told_before_anything_is_done_and_stops_no_other_table(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(
        *(
            NestedField(*each)
            for each in ((1, "id", LongType()), (2, "seen", TimestampType()), (3, "text", StringType()))
        )
    )
    right = make_other(catalog)
    wrong = {}
    monkeypatch.setattr(table_properties, "check_policy", lambda properties: None)  # other engines check nothing
    for number, (settings, _) in enumerate(_WRONG):
        given = _QUIET | _RETAIN | {"history.expire.max-snapshot-age-ms": "1"} | settings
        wrong[f"web.t{number}"] = catalog.create_table(f"web.t{number}", schema, properties=given)
    for _ in range(2):
        wrong["web.t0"].append(pa.table({"id": [1], "seen": [datetime(2020, 1, 1)], "text": ["old"]}))
    before = {name: table.metadata_location for name, table in wrong.items()}
    for dry_run in (True, False):
        steps = {step.table: step for step in run(catalog, dry_run=dry_run).steps}
        assert steps.pop("web.other").outcome == ("planned" if dry_run else "done")
        assert {step.outcome for step in steps.values()} == {"failed"} and steps.keys() == wrong.keys()
        for (_, message), (name, step) in zip(
            _WRONG, sorted(steps.items(), key=lambda each: int(each[0][5:])), strict=True
        ):
            assert re.search(f"ConfigurationError: .*{name}", step.result)
            assert re.search(message, step.result)
    assert before == {name: table.refresh().metadata_location for name, table in wrong.items()}
    assert len(whole(right)) == 1


@pytest.mark.parametrize("given", ["retain.column", "retain.age"])
def test_half_of_a_policy_is_refused(catalog: Any, given: str) -> None:
    table = make(catalog, TimestampType())
    table.remove_properties(*{"hms_iceberg.retain.column", "hms_iceberg.retain.age"} - {f"hms_iceberg.{given}"})
    (step,) = run(catalog).steps
    assert step.outcome == "failed" and "hms_iceberg.retain.column" in step.result
    assert "hms_iceberg.retain.age" in step.result and "web.visits" in step.result


def make_other(catalog: Any) -> Table:
    """Another table with a policy, and one row of two that is too old."""
    schema = Schema(NestedField(1, "day", DateType()))
    given = _QUIET | {"hms_iceberg.retain.column": "day", "hms_iceberg.retain.age": "1d"}
    table = catalog.create_table("web.other", schema, properties=given)
    table.append(pa.table({"day": [date(2026, 3, 8), date(2026, 3, 9)]}))
    return table


def test_a_policy_file_sets_what_is_kept_and_other_properties_are_none_of_its(catalog: Any, tmp_path: Path) -> None:
    table = make(catalog, TimestampType(), **{"hms_iceberg.of-somebody-else": "1"})
    table.remove_properties("hms_iceberg.retain.column", "hms_iceberg.retain.age")
    path = tmp_path / "policy.yaml"
    path.write_text("tables:\n  'web.v*': {retain-column: seen, retain-age: 7d, time-zone: UTC, tags-daily: 2}\n")
    policies = Policies.load(path)
    steps = MaintenanceService(catalog, policies=policies, clock=NOW.timestamp).run().steps
    assert [step.action for step in steps] == ["delete_old_rows"]
    assert pc.min(whole(table)["seen"]).as_py() == datetime(2026, 3, 3)


def test_the_view_of_all_tables_tells_what_a_policy_would_do(catalog: Any) -> None:
    make(catalog, DateType(), MonthTransform())
    (row,) = system_table(catalog, "maintenance").to_pylist()
    assert (row["action"], row["input_bytes"]) == ("delete_old_rows", 0)
    assert re.fullmatch(r"\d+ data files have only rows of seen before \d{4}-\d\d-01", row["why"])
    (advice,) = portrait_of(catalog.load_table("web.visits")).advice
    assert (advice.action, advice.command) == ("delete_old_rows", "hms-iceberg maintain --table web.visits")


def test_files_that_a_tag_needs_stay_when_old_rows_go_and_snapshots_expire(catalog: Any) -> None:
    table = make(catalog, DateType(), IdentityTransform(), **{"history.expire.max-snapshot-age-ms": "1"})
    table.manage_snapshots().create_tag(None, "audit").commit()
    table.set_properties(
        {
            "maintenance.remove-orphans": "true",
            "maintenance.nobody-writes": "true",
            "maintenance.remove-orphans-age-ms": "0",
        }
    )
    tagged = table.scan(snapshot_id=table.current_snapshot().snapshot_id).to_arrow().sort_by("id")
    report = run(catalog, NOW + timedelta(days=400))
    assert {step.action for step in report.steps} >= {"delete_old_rows", "expire_snapshots", "remove_orphan_files"}
    assert not report.failed
    assert table.refresh().scan().use_ref("audit").to_arrow().sort_by("id") == tagged
    assert whole(table).num_rows < tagged.num_rows
    table.manage_snapshots().remove_tag("audit").commit()
    files = len(list(local_path(table.location()).rglob("*.parquet")))
    assert not run(catalog, NOW + timedelta(days=401)).failed
    assert len(list(local_path(table.location()).rglob("*.parquet"))) < files


def test_old_rows_that_others_append_while_some_are_deleted_go_by_the_next_run(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, TimestampType(), **{"write.delete.mode": "merge-on-read"})
    late = pa.table({"id": [500], "seen": [datetime(2020, 1, 1)], "text": ["late"]})
    delete = Table.delete

    def delete_beside_others(self: Table, *arguments: Any, **more: Any) -> None:
        delete(self, *arguments, **more)
        catalog.load_table("web.visits").append(late)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "delete", delete_beside_others)
        run(catalog)
    assert 500 in whole(table)["id"].to_pylist()
    run(catalog)
    assert 500 not in whole(table)["id"].to_pylist()
