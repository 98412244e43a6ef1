"""Tables over files whose footers have old statistics: filters, deletes and upserts find every row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg import Catalog, load_catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.check.findings import WrongBounds
from hms_iceberg.maintenance.repair import repair_table
from hms_iceberg.migration.verify import TableSummary, summarise, verify
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import DecimalType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_python, to_bytes
from hms_iceberg.table import Table
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from tests.support.parquet_footers import changed, chunks, extremes, groups, set_statistics, set_writer

OLD = "parquet-mr version 1.8.2 (build c6522788629e590a53eb79874b95f6c3ff11f16c)"
VALUES = [Decimal(each) for each in ("-2.56", "-0.01", "1.00", "1.27", "1.28", "2.00", "24.00", "327.68")]
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KIND = pa.decimal128(25, 2)


def old_file(folder: Path, order: str = "signed", group_rows: int = 4) -> str:
    """A file of the values whose row groups have statistics of the old kind."""
    location = folder / "old.parquet"
    pq.write_table(pa.table({"value": pa.array(VALUES, KIND)}), location, row_group_size=group_rows)

    def change(footer: Any) -> None:
        set_writer(footer, OLD, ordered=False)
        for number, group in enumerate(groups(footer)):
            rows = VALUES[number * group_rows :][:group_rows]
            stored = [int(each.scaleb(2)).to_bytes(11, "big", signed=True) for each in rows]
            set_statistics(chunks(group)[0], *extremes(stored, order), old=True)

    return changed(location, change)


def table_of(folder: Path, **options: Any) -> Table:
    catalog = load_catalog("here", type="hadoop", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("db")
    location = old_file(folder, **options)
    table = catalog.create_table("db.t", pq.read_schema(location))
    table.add_files([location])
    return table


def values(rows: pa.Table) -> list[Decimal]:
    return sorted(rows["value"].to_pylist())


@pytest.mark.parametrize("order", ["signed", "unsigned"])
def test_filters_of_every_operator_find_the_rows_whose_statistics_are_wrong(tmp_path: Path, order: str) -> None:
    table = table_of(tmp_path, order=order)
    for value in (*VALUES, Decimal("1.50")):
        for name, test in TESTS.items():
            wanted = [each for each in VALUES if test(each, value)]
            found = table.scan(f"value {name} {value}")
            assert (values(found.to_arrow()), found.count()) == (wanted, len(wanted)), (name, value)
    wanted = [VALUES[0], VALUES[4]]
    assert values(table.scan(f"value in ({wanted[0]}, {wanted[1]})").to_arrow()) == wanted


@pytest.mark.parametrize("text", ["value >= 2.00", "value = 1.00", "value < 0", "value != 24.00"])
def test_deletes_take_the_rows_that_match_and_no_others(tmp_path: Path, text: str) -> None:
    table = table_of(tmp_path)
    name, value = text.split()[1:]
    table.delete(text)
    assert values(table.scan().to_arrow()) == [each for each in VALUES if not TESTS[name](each, Decimal(value))]


def test_an_upsert_replaces_the_row_with_its_key(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for value in VALUES:
        table.upsert(pa.table({"value": pa.array([value], KIND)}), join_cols=["value"])
    assert values(table.scan().to_arrow()) == VALUES


# ------------------------------------------------------------------ tables that have wrong bounds from before


def table_with_wrong_bounds(
    folder: Path, low: str = "2.00", high: str = "24.00", mapped: bool = True, task: FileScanTask | None = None
) -> tuple[Catalog, Table]:
    """A table whose manifest has bounds that were once taken from the statistics of its file."""
    if task is None:
        (task,) = table_of(folder).scan().plan_files()
    catalog = load_catalog("here", type="hadoop", warehouse=str(folder / "elsewhere"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("value", KIND)]))
    table.append(pa.table({"value": pa.array([Decimal("1000.00")], KIND)}))
    mapping = create_name_mapping(table.schema()).to_json()
    if mapped:
        with table.transaction() as transaction:
            transaction.set_properties({"schema.name-mapping.default": mapping})
    file, kind = task.file, DecimalType(25, 2)
    wrong = replace(
        file,
        lower_bounds={1: to_bytes(kind, from_python(kind, low))},
        upper_bounds={1: to_bytes(kind, from_python(kind, high))},
    )
    with table.transaction() as transaction:
        transaction.add(FastAppend(files=(wrong,)))
    return catalog, table


@pytest.mark.parametrize("options", [{}, {"record_counts": True}, {"values": True}])
def test_a_check_finds_bounds_from_old_statistics(tmp_path: Path, options: dict[str, Any]) -> None:
    _, table = table_with_wrong_bounds(tmp_path)
    found = check_table(table, **options).findings
    assert [(type(each), getattr(each, "column", None)) for each in found] == [(WrongBounds, "value")]
    assert "Repair" in str(found[0])


@pytest.mark.parametrize(("low", "high", "way"), [("-1.00", "999.00", "below"), ("-9.00", "1.00", "above")])
def test_a_check_compares_both_bounds_with_those_of_a_sound_footer(
    tmp_path: Path, low: str, high: str, way: str
) -> None:
    catalog = load_catalog("own", type="hadoop", warehouse=str(tmp_path / "own"))
    catalog.create_namespace("db")
    own = catalog.create_table("db.t", pa.schema([("value", KIND)]))
    own.append(pa.table({"value": pa.array(VALUES, KIND)}))
    (task,) = own.scan().plan_files()
    _, table = table_with_wrong_bounds(tmp_path, low, high, mapped=False, task=task)
    assert check_table(table).ok  # has no files of others
    (found,) = check_table(table, record_counts=True).findings
    assert isinstance(found, WrongBounds) and way in found.way


def test_a_repair_makes_bounds_from_old_statistics_anew(tmp_path: Path) -> None:
    catalog, table = table_with_wrong_bounds(tmp_path)
    table.append(pa.table({"value": pa.array([Decimal("2000.00")], KIND)}))
    whole = [*VALUES, Decimal(1000), Decimal(2000)]
    assert values(table.scan("value = 1.00").to_arrow()) == []
    history = [each.snapshot_id for each in table.snapshots()]
    planned = repair_table(catalog, ("db", "t"))
    assert [step.kind for step in planned.plan.steps] == ["bounds"]
    repair_table(catalog, ("db", "t"), dry_run=False)
    table = catalog.load_table("db.t")
    assert [each.snapshot_id for each in table.snapshots()] == history
    found = [len(list(table.scan(text).plan_files())) for text in ("value < -2.56", "value <= -2.56", "value > 400")]
    assert found == [0, 1, 2]  # right bounds leave files out
    assert (check_table(table, values=True).findings, repair_table(catalog, ("db", "t")).plan.steps) == ((), ())
    for snapshot_id, rows in zip(history[-2:], (whole[:-1], whole), strict=True):
        for value in VALUES:
            for name, test in TESTS.items():
                found = table.scan(f"value {name} {value}", snapshot_id=snapshot_id)
                assert values(found.to_arrow()) == [each for each in rows if test(each, value)], (name, value)
    table.delete("value >= 2.00")
    assert values(table.scan().to_arrow()) == [each for each in whole if each < 2]


def test_a_repair_mends_bounds_of_a_manifest_whose_list_miscounts_it(tmp_path: Path) -> None:
    catalog, table = table_with_wrong_bounds(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    listed = [replace(each, added_rows_count=99) for each in manifests_of(snapshot, table.storage)]
    data, _ = encode_manifest_list(
        listed, 2, snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.sequence_number
    )
    Path(snapshot.manifest_list.removeprefix("file://")).write_bytes(data)
    repair_table(catalog, ("db", "t"), dry_run=False)
    table = catalog.load_table("db.t")
    assert check_table(table).ok
    assert values(table.scan("value < 0").to_arrow()) == VALUES[:2]


def test_bounds_that_old_statistics_do_not_bear_out_and_values_do_are_kept(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    (task,) = table.scan().plan_files()
    kind = DecimalType(25, 2)
    true = {1: to_bytes(kind, from_python(kind, str(VALUES[0])))}, {1: to_bytes(kind, from_python(kind, "999.00"))}
    with table.transaction() as transaction:
        transaction.add(DeleteFiles(files=(task.file,)))
    with table.transaction() as transaction:
        transaction.add(FastAppend(files=(replace(task.file, lower_bounds=true[0], upper_bounds=true[1]),)))
    assert check_table(table, record_counts=True).ok


class PlainReader:
    """Reads the values as they are, as Spark does of a Hive table."""

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        return summarise(pa.table({"value": pa.array([*VALUES, Decimal("1000.00")], KIND)}).to_batches(), arrow)


def test_a_comparison_reads_with_filters_and_finds_what_bounds_leave_out(tmp_path: Path) -> None:
    catalog, table = table_with_wrong_bounds(tmp_path)
    reader: Any = PlainReader()
    assert verify("db.hive", table, "sums", reader).differences == (
        "column 'value' holds -2.56, and a filter by it finds no row of the Iceberg table",
    )
    repair_table(catalog, ("db", "t"), dry_run=False)
    assert verify("db.hive", catalog.load_table("db.t"), "sums", reader).is_equal
