from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from hms_iceberg.errors import (
    ChangeEventError,
    CommitConflictError,
    InvalidInputError,
    InvalidSchemaChangeError,
    NoSuchTableError,
    SchemaMismatchError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedError,
)
from hms_iceberg.spec.data_types import (
    BooleanType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.change_events.apply_changes import AppliedChanges
from hms_iceberg.table.table import Table
from tests.support.guides import block
from tests.support.row_tables import (
    MODES,
    arrow,
    check,
    create,
    data_files_on_disk,
    ids,
    live,
    numbered,
    other_writer,
    row,
    rows_of,
)
from tests.support.tables import BY_CITY

WAYS = [(version, mode) for version in (1, 2, 3) for mode in (*MODES, "auto") if (version, mode) != (1, MODES[1])]


def events(*rows: Mapping[str, Any]) -> pa.Table:
    """Events with the columns of the rows, an operation and an order."""
    schema = pa.schema(
        [("id", pa.int64()), ("city", pa.string()), ("amount", pa.int32()), ("op", pa.string()), ("at", pa.int64())]
    )
    return pa.Table.from_pylist([dict(each) for each in rows], schema=schema)


def gone(key: int, at: int = 0, op: str = "d") -> dict[str, Any]:
    return {"id": key, "op": op, "at": at}


def there(key: int, at: int = 0, op: str = "u", **values: Any) -> dict[str, Any]:
    return {**row(key, **values), "op": op, "at": at}


def apply(table: Table, *rows: Mapping[str, Any], **options: Any) -> AppliedChanges:
    return table.apply_changes(events(*rows), keys=["id"], operation="op", order="at", **options)


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_of_each_key_the_newest_event_becomes_its_row_or_deletes_it(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, spec=BY_CITY)
    table.append(numbered(0, 5))
    table.append(numbered(5, 10))
    result = apply(
        table,
        there(3, 7, amount=-3),
        there(3, 5, amount=-1),
        gone(4, 1),
        gone(5, 9),
        there(5, 8, "c"),
        gone(6, 1),
        there(6, 2, "insert", city="Bern"),
        there(20, 1, "c"),
        there(21, 1, "c"),
        gone(21, 2),
        gone(99, 1),
        mode=mode,
    )
    assert result == AppliedChanges(11, rows_inserted=1, rows_updated=2, rows_deleted=2, events_superseded=4)
    expected = [row(key) for key in (0, 1, 2)] + [row(3, amount=-3), row(6, city="Bern")]
    assert rows_of(table) == expected + [row(key) for key in (7, 8, 9, 20)]
    assert len(table.snapshots()) == 3, "data and deletes are one snapshot"
    check(table)


def test_without_an_operation_every_event_is_an_upsert_and_without_an_order_the_later_one_wins(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    rows = pa.concat_tables([arrow([row(1, amount=1), row(7)]), arrow([row(1, amount=2)])])
    for source in (rows, rows.to_reader(), pl.DataFrame(rows)):
        result = table.apply_changes(source, keys=["id"])
        assert (result.events, result.events_superseded) == (3, 1)
        assert rows_of(table) == [row(0), row(1, amount=2), row(2), row(7)]


def test_among_events_of_one_order_the_later_one_of_the_source_wins(tmp_path: Path) -> None:
    table = create(tmp_path)
    apply(table, there(1, 5, amount=1), there(1, 5, amount=2), there(1, 4, amount=3), there(2, 5), gone(2, 5))
    assert rows_of(table) == [row(1, amount=2)]


def test_an_order_may_have_several_columns(tmp_path: Path) -> None:
    table = create(tmp_path)
    source = arrow([row(1, amount=1), row(1, amount=2), row(1, amount=3)])
    source = source.append_column("epoch", pa.array([2, 2, 1])).append_column("step", pa.array([1.5, 0.5, 9.0]))
    table.apply_changes(source, keys=["id"], order=["epoch", "step"])
    assert rows_of(table) == [row(1, amount=1)]


@pytest.mark.parametrize(
    ("name", "is_delete"),
    [(each, False) for each in ("insert", "UPDATE", "Upsert", "c", "r", "u", "I", "U", "UPDATE_AFTER")]
    + [(each, True) for each in ("delete", "DELETE", "d", "D", "UPDATE_BEFORE", "update_preimage")],
)
def test_operations_have_the_names_of_databases_debezium_and_changelogs(
    tmp_path: Path, name: str, is_delete: bool
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    apply(table, there(1, op=name, amount=9))
    assert rows_of(table) == [row(0), *([] if is_delete else [row(1, amount=9)]), row(2)]


def test_the_changelog_of_one_table_makes_another_the_same(tmp_path: Path) -> None:
    source, copy = create(tmp_path / "a"), create(tmp_path / "b", 3)
    source.append(numbered(0, 8))
    source.update({"amount": 7}, "id < 3")
    source.delete("id = 5")
    source.update({"id": 50}, "id = 6")
    log = source.changelog_scan(identifier_columns=["id"]).to_arrow()
    log = log.drop([name for name in log.column_names if name.startswith("_") and name[1:6] not in ("chang",)])
    copy.apply_changes(log, keys=["id"], operation="_change_type", order="_change_ordinal")
    assert rows_of(copy) == rows_of(source)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"id": None}, r"event 1 \(id None, at 7\) has no key: 'id' is null"),
        ({"op": None}, r"event 1 \(id 1, at 7\) has no operation"),
        ({"op": "t"}, r"event 1 \(id 1, at 7\) has the unknown operation 't'"),
        ({"at": None}, r"event 1 \(id 1, at None\) has no order: 'at' is null"),
    ],
)
def test_an_event_that_cannot_be_applied_is_named_and_nothing_is_written(
    tmp_path: Path, bad: Mapping[str, Any], named: str
) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    files = data_files_on_disk(table)
    with pytest.raises(ChangeEventError, match=named) as caught:
        apply(table, there(0, 6), {**there(1, 7), **bad})
    assert caught.value.row == 1
    assert data_files_on_disk(table) == files
    assert len(table.snapshots()) == 1


def test_a_value_that_does_not_fit_names_its_event(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "v", LongType(), required=True))
    table = create(tmp_path, schema=schema)
    source = pa.table({"id": [1, 1, 2, 3, 4], "v": [None, 1, 2, None, 4], "op": ["c", "c", "c", "c", "c"]})
    with pytest.raises(ChangeEventError, match=r"event 3 \(id 3\) does not fit: .*'v'.* required") as caught:
        table.apply_changes(source, keys=["id"], operation="op")
    assert caught.value.row == 3, "that of event 0 was superseded"
    deleted = source.set_column(2, "op", pa.array(["d"] * 5))
    assert table.apply_changes(deleted, keys=["id"], operation="op").rows_deleted == 0, "deletes need no values"


def test_columns_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    good = arrow([row(1)])
    with pytest.raises(SchemaMismatchError, match="lack the column 'op'"):
        table.apply_changes(good, keys=["id"], operation="op")
    with pytest.raises(SchemaMismatchError, match="no such column"):
        table.apply_changes(good.append_column("extra", pa.array([1])), keys=["id"])
    with pytest.raises(UnknownColumnError, match="nothing"):
        table.apply_changes(good.append_column("nothing", pa.array([1])), keys=["nothing"])
    with pytest.raises(TypeMismatchError, match="operation column 'amount' has type int32"):
        table.apply_changes(good, keys=["id"], operation="amount")
    with pytest.raises(TypeMismatchError, match="order column 'o' has type struct"):
        table.apply_changes(good.append_column("o", pa.array([{"a": 1}])), keys=["id"], order="o")
    for keys in ([], "id", None):
        with pytest.raises(InvalidInputError, match="keys"):
            table.apply_changes(good, keys=keys)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="twice"):
        table.apply_changes(good, keys=["id", "id"])
    with pytest.raises(InvalidInputError, match="mode is 'fast'"):
        table.apply_changes(good, keys=["id"], mode="fast")
    assert len(table.snapshots()) == 1


def test_version_1_has_no_merge_on_read(tmp_path: Path) -> None:
    table = create(tmp_path, 1)
    table.append(numbered(0, 3))
    with pytest.raises(UnsupportedError, match=r"apply changes to table db\.events by merge-on-read"):
        apply(table, gone(1), mode="merge-on-read")
    assert ids(table) == [0, 1, 2]


# ------------------------------------------------------------------------------------------- an order that is stored


WITH_TIME = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "amount", IntegerType()), NestedField(3, "at", LongType())
)


def timed(*rows: tuple[int, int, int | None, str]) -> pa.Table:
    names = ["id", "amount", "at", "op"]
    schema = pa.schema([("id", pa.int64()), ("amount", pa.int32()), ("at", pa.int64()), ("op", pa.string())])
    return pa.Table.from_pylist([dict(zip(names, each, strict=True)) for each in rows], schema=schema)


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_an_older_event_of_a_later_call_leaves_the_newer_row(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, schema=WITH_TIME)
    table.append(timed((9, 9, None, "")).drop(["op"]))

    def apply_timed(*rows: tuple[int, int, int | None, str]) -> AppliedChanges:
        return table.apply_changes(timed(*rows), keys=["id"], operation="op", order="at", mode=mode)

    apply_timed((1, 10, 100, "c"), (2, 20, 100, "c"), (3, 30, 100, "c"))
    result = apply_timed((1, 11, 99, "u"), (2, 21, 100, "u"), (3, 0, 99, "d"), (9, 8, -5, "u"))
    assert result == AppliedChanges(4, rows_updated=2, events_superseded=2)
    expected = [{"id": 1, "amount": 10, "at": 100}, {"id": 2, "amount": 21, "at": 100}]
    assert rows_of(table) == [*expected, {"id": 3, "amount": 30, "at": 100}, {"id": 9, "amount": 8, "at": -5}]
    apply_timed((1, 0, 101, "d"))
    apply_timed((1, 12, 98, "u"))
    assert ids(table) == [1, 2, 3, 9], "a deleted row leaves nothing to compare with"


def test_an_order_of_which_the_table_lacks_a_column_is_not_compared_with_rows(tmp_path: Path) -> None:
    table = create(tmp_path, schema=WITH_TIME)
    table.append(timed((1, 10, 100, "")).drop(["op"]))
    source = timed((1, 11, 99, "u")).append_column("step", pa.array([1]))
    table.apply_changes(source, keys=["id"], operation="op", order=["at", "step"])
    assert rows_of(table) == [{"id": 1, "amount": 11, "at": 99}]


def test_nan_is_the_greatest_order_and_false_is_less_than_true(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "at", BooleanType()))
    table = create(tmp_path / "a", schema=schema)
    both = pa.table({"id": [1, 1, 2], "at": [True, False, False]})
    table.apply_changes(both, keys=["id"], order="at")
    table.apply_changes(pa.table({"id": [1, 2], "at": [False, True]}), keys=["id"], order="at")
    assert rows_of(table) == [{"id": 1, "at": True}, {"id": 2, "at": True}]


# ------------------------------------------------------------------------------------------------------ rows


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_columns_that_the_source_lacks_keep_their_values(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version, spec=BY_CITY)
    table.append(numbered(0, 4))
    table.append(numbered(4, 8))
    given = arrow([row(5, amount=-5), row(1, amount=-1), row(9)]).drop(["city"])
    table.apply_changes(given, keys=["id"], mode=mode)
    expected = [row(key) for key in range(8)] + [row(9, city=None)]
    expected[1], expected[5] = row(1, amount=-1), row(5, amount=-5)
    assert rows_of(table) == expected
    check(table)


@pytest.mark.parametrize("mode", MODES)
def test_updated_rows_keep_their_row_ids(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, 3)
    table.append(numbered(0, 4))
    table.append(numbered(4, 8))
    before = {each["id"]: each["_row_id"] for each in rows_of(table, "id", "_row_id")}
    for _ in range(2):
        apply(table, there(6, amount=1), there(2, amount=1), gone(3), there(30), mode=mode)
    after = rows_of(table, "id", "_row_id", "_last_updated_sequence_number")
    assert {each["id"]: each["_row_id"] for each in after if each["id"] < 10} == {
        key: value for key, value in before.items() if key != 3
    }
    updated = {each["id"] for each in after if each["_last_updated_sequence_number"] == 4}
    assert updated == {2, 6, 30}
    assert len({each["_row_id"] for each in after}) == 8


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_rows_that_share_a_key_are_replaced_by_one(tmp_path: Path, version: int, mode: str) -> None:
    table = create(tmp_path, version)
    table.append(arrow([row(1), row(2), row(1, amount=8), row(3)]))
    table.append(arrow([row(1, amount=9), row(3, amount=9)]))
    assert apply(table, there(1, amount=5), gone(3), mode=mode) == AppliedChanges(2, rows_updated=1, rows_deleted=4)
    assert rows_of(table) == [row(1, amount=5), row(2)]


def test_rows_of_the_table_without_a_key_stay(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()))
    table = create(tmp_path, schema=schema)
    table.append(pa.table({"id": pa.array([1, None], pa.int64()), "city": ["a", "b"]}))
    table.apply_changes(pa.table({"id": [1], "city": ["c"]}), keys=["id"])
    assert sorted(table.scan().to_arrow()["city"].to_pylist()) == ["b", "c"]


def test_keys_may_lie_in_structs(tmp_path: Path) -> None:
    inner = StructType(NestedField(3, "k", LongType()), NestedField(4, "other", StringType()))
    schema = Schema(NestedField(1, "s", inner), NestedField(2, "v", LongType()))
    table = create(tmp_path, schema=schema)
    table.append(pa.table({"s": [{"k": 1, "other": "a"}, {"k": 2, "other": "b"}], "v": [1, 2]}))
    source = pa.table({"s": [{"k": 2, "other": "c"}, {"k": 1, "other": None}], "v": [5, None], "op": ["u", "d"]})
    table.apply_changes(source, keys=["s.k"], operation="op")
    assert table.scan().to_arrow().to_pylist() == [{"s": {"k": 2, "other": "c"}, "v": 5}]


def test_by_cost_only_files_of_which_half_changes_are_copied(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    apply(table, *(there(key, amount=0) for key in (0, 1, 2, 3, 4, 10)))
    task = {each.content for each in live(table) if each.content is not DataFileContent.DATA}
    assert task == {DataFileContent.POSITION_DELETES}
    deletes = [each for each in live(table) if each.content is DataFileContent.POSITION_DELETES]
    assert [each.record_count for each in deletes] == [1], "the other file was copied"
    assert ids(table) == list(range(20))
    check(table)


def test_the_mode_that_the_table_sets_is_kept_unless_another_is_asked_for(tmp_path: Path) -> None:
    table = create(tmp_path, mode="copy-on-write")
    table.append(numbered(0, 10))
    apply(table, there(1))
    assert all(each.content is DataFileContent.DATA for each in live(table))
    apply(table, there(2), mode="merge-on-read")
    assert not all(each.content is DataFileContent.DATA for each in live(table))


def test_only_files_that_may_have_a_key_are_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    table.append(numbered(10, 20))
    first = min(live(table), key=lambda each: each.file_path if each.lower_bounds else "")
    for file in live(table):
        if file.record_count and (file.lower_bounds or {})[1] == (0).to_bytes(8, "little"):
            first = file
    Path(first.file_path.removeprefix("file://")).unlink()
    apply(table, there(12, amount=1), gone(13))
    assert table.scan("id >= 10").count() == 9


# ----------------------------------------------------------------------------------------------------- growth


def test_the_schema_grows_if_asked_to(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=True),
        NestedField(2, "s", StructType(NestedField(3, "a", IntegerType(), required=True))),
        NestedField(4, "l", ListType(5, IntegerType(), element_required=True)),
        identifier_field_ids=[1],
    )
    table = create(tmp_path, schema=schema)
    table.append(
        pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}], "l": [[1]]}).cast(table.schema().as_arrow())
    )
    source = pa.table(
        {
            "id": [2**40, 1],
            "s": [{"a": 2**40, "b": "x"}, None],
            "l": [[2**40], []],
            "extra": [1.5, None],
            "op": ["c", "u"],
            "at": [1, 2],
        }
    )
    with pytest.raises(TypeMismatchError, match="'id'"):
        table.apply_changes(source, keys=["id"], operation="op", order="at")
    table.apply_changes(source, keys=["id"], operation="op", order="at", evolve=True)
    found = table.schema()
    assert [field.name for field in found.fields] == ["id", "s", "l", "extra"], "operation and order are no columns"
    assert found.find_field("id") == NestedField(1, "id", LongType(), required=True)
    assert {each.name for each in found.find_type("s").fields} == {"a", "b"}
    for name in ("s.a", "l.element"):
        assert (found.find_type(name), found.find_field(name).required) == (LongType(), True), name
    assert found.find_field("s.b").optional
    assert found.find_field("extra").optional
    assert rows_of(table) == [
        {"id": 1, "s": None, "l": [], "extra": None},
        {"id": 2**40, "s": {"a": 2**40, "b": "x"}, "l": [2**40], "extra": 1.5},
    ]
    check(table)


def test_a_type_that_cannot_become_the_other_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    source = pa.table({"id": [1], "amount": ["one"]})
    with pytest.raises(InvalidSchemaChangeError, match="amount"):
        table.apply_changes(source, keys=["id"], evolve=True)
    assert len(table.snapshots()) == 1


# ------------------------------------------------------------------------------------------- beside other writers


@pytest.mark.parametrize("mode", MODES)
def test_a_concurrent_commit_to_the_same_rows_repeats_the_change(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    other = other_writer(table)
    other.delete("id = 3")
    other.append(arrow([row(20, amount=1)]))
    result = apply(table, there(3, amount=9), there(20, amount=2), gone(4), mode=mode)
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    rows = {each["id"]: each["amount"] for each in rows_of(table)}
    assert sorted(rows) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 20], "no key twice"
    assert (rows[3], rows[20]) == (9, 2)
    check(table)


def test_another_table_of_the_name_does_not_get_the_events(tmp_path: Path) -> None:
    table, other = create(tmp_path / "a"), create(tmp_path / "b")
    table.append(numbered(0, 3))
    table.metastore._rows.update(other.metastore._rows)  # type: ignore[attr-defined]
    with pytest.raises(NoSuchTableError, match="its name belongs to the table at"):
        apply(table, there(1, amount=9))
    assert not other_writer(table).snapshots()


def test_in_a_transaction_a_conflict_is_raised(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 10))
    transaction = table.transaction()
    transaction.apply_changes(events(there(3)), keys=["id"], operation="op", order="at")
    other_writer(table).delete("id = 3")
    with pytest.raises(CommitConflictError):
        transaction.commit_transaction()
    assert 3 not in ids(other_writer(table))


def test_a_transaction_sees_its_own_changes(tmp_path: Path) -> None:
    table = create(tmp_path, 3)
    table.append(numbered(0, 10))
    with table.transaction() as transaction:
        for amount in (1, 2):
            source = events(there(3, amount=amount), there(30, amount=amount), gone(amount))
            transaction.apply_changes(source, keys=["id"], operation="op", order="at")
    rows = {each["id"]: each["amount"] for each in rows_of(table)}
    assert (rows[3], rows[30], sorted(rows)) == (2, 2, [0, 3, 4, 5, 6, 7, 8, 9, 30])


def test_changes_go_to_a_branch(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    apply(table, gone(1), branch="audit")
    assert ids(table) == [0, 1, 2]
    assert [each["id"] for each in rows_of(table, branch="audit")] == [0, 2]


def test_nothing_to_do_makes_no_snapshot(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    assert apply(table, gone(77)) == AppliedChanges(1)
    assert apply(table) == AppliedChanges(0)
    assert len(table.snapshots()) == 1


def test_the_guide_s_events_are_applied_as_it_says(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "page", StringType()))
    visits = create(tmp_path, schema=schema)
    visits.append(pa.table({"id": [1, 3], "page": ["/", "/"]}))
    exec(block("table", "Changes from other systems", "python").code, {"pa": pa, "visits": visits})
    assert rows_of(visits) == [{"id": 3, "page": "/"}, {"id": 4, "page": "/buy"}]
    assert visits.applied_offsets("cdc") == {"visits-0": 3}
