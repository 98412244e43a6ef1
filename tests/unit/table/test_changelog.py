from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.spec.data_types import DoubleType, ListType, LongType, MapType, NestedField, StringType, StructType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.row_tables import MODES, arrow, create, numbered, row
from tests.support.tables import BY_CITY, QUICK

EXAMPLES = int(os.environ.get("HMS_ICEBERG_EXAMPLES", "25"))
CHANGE = ("_change_type", "_change_ordinal", "_commit_snapshot_id")

Change = tuple[Any, ...]


def changes(table: Table, **options: Any) -> list[Change]:
    """Type, ordinal and key of each change, in order."""
    rows = table.changelog_scan(**options).to_arrow().to_pylist()
    return [(each["_change_type"], each["_change_ordinal"], each["id"]) for each in rows]


@pytest.fixture(params=[(2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    version, mode = request.param
    return create(tmp_path, version, mode)


def test_inserts_and_deletes_come_with_the_number_and_id_of_their_snapshot(table: Table) -> None:
    table.append(numbered(0, 3))
    table.delete("id = 1")
    table.append(numbered(5, 6))
    assert changes(table) == [("INSERT", 0, 0), ("INSERT", 0, 1), ("INSERT", 0, 2), ("DELETE", 1, 1), ("INSERT", 2, 5)]
    read = table.changelog_scan(selected_fields=("id",)).to_arrow()
    assert read.schema.names == ["id", *CHANGE]
    assert read.schema.field("_change_type").type == pa.string()
    assert read.schema.field("_change_ordinal").type == pa.int32()
    snapshots = [each.snapshot_id for each in table.snapshots()]
    assert read["_commit_snapshot_id"].to_pylist() == [snapshots[at] for at in (0, 0, 0, 1, 2)]


def test_a_range_leaves_out_what_is_before_and_after_it(table: Table) -> None:
    table.append(numbered(0, 3))
    first = table.snapshots()[-1].snapshot_id
    table.delete("id = 1")
    second = table.snapshots()[-1].snapshot_id
    table.append(numbered(5, 6))
    scan = table.changelog_scan(selected_fields=("id",)).from_snapshot_id_exclusive(first)
    assert scan.to_snapshot_id_inclusive(second).to_arrow().to_pylist() == [
        dict(zip(("id", *CHANGE), (1, "DELETE", 0, second), strict=True))
    ]
    assert changes(table, from_snapshot_id_exclusive=second, to_snapshot_id_inclusive=second) == []


def test_an_update_is_a_pair_where_the_identifier_is_known(table: Table) -> None:
    table.append(numbered(0, 4))
    start = table.snapshots()[-1].snapshot_id
    table.update({"amount": 99}, "id >= 2")
    plain = changes(table, from_snapshot_id_exclusive=start)
    assert plain == [("DELETE", 0, 2), ("DELETE", 0, 3), ("INSERT", 0, 2), ("INSERT", 0, 3)]
    read = table.changelog_scan(from_snapshot_id_exclusive=start, identifier_columns=["id"]).to_arrow().to_pylist()
    assert [(each["id"], each["amount"], each["_change_type"]) for each in read] == [
        (2, 4, "UPDATE_BEFORE"),
        (2, 99, "UPDATE_AFTER"),
        (3, 6, "UPDATE_BEFORE"),
        (3, 99, "UPDATE_AFTER"),
    ]


def test_rows_that_were_only_rewritten_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "copy-on-write")
    table.append(numbered(0, 4))
    start = table.snapshots()[-1].snapshot_id
    table.delete("id = 3")
    assert changes(table, from_snapshot_id_exclusive=start) == [("DELETE", 0, 3)]
    shown = changes(table, from_snapshot_id_exclusive=start, carryovers=True)
    assert sorted(shown) == sorted(
        [*(("DELETE", 0, key) for key in range(4)), *(("INSERT", 0, key) for key in range(3))]
    )


def test_net_changes_leave_out_what_came_and_went(table: Table) -> None:
    table.append(numbered(0, 2))
    start = table.snapshots()[-1].snapshot_id
    table.append(numbered(2, 4))
    table.delete("id in (0, 3)")
    table.append(numbered(0, 1))
    table.update({"amount": 50}, "id = 1")
    table.update({"amount": 51}, "id = 1")
    since = {"from_snapshot_id_exclusive": start}
    assert changes(table, net_changes=True, **since) == [("DELETE", 3, 1), ("INSERT", 0, 2), ("INSERT", 4, 1)]
    assert changes(table, net_changes=True, identifier_columns=["id"], **since) == [
        ("UPDATE_BEFORE", 3, 1),
        ("UPDATE_AFTER", 4, 1),
        ("INSERT", 0, 2),
    ]


def test_equality_deletes_delete_the_rows_that_were_there_before(tmp_path: Path) -> None:
    table = create(tmp_path, 2)
    table.append(arrow([row(1), row(2), row(2, amount=7)]))
    start = table.snapshots()[-1].snapshot_id
    with table.new_row_delta() as delta:
        delta.delete_equal(arrow([row(2), row(8)]).select(["id"]), ["id"])
        delta.add_rows(arrow([row(2, amount=8), row(3)]))
    assert changes(table, from_snapshot_id_exclusive=start) == [
        ("DELETE", 0, 2),
        ("DELETE", 0, 2),
        ("INSERT", 0, 2),
        ("INSERT", 0, 3),
    ]
    # Two rows of one key were deleted: nobody can say which became the new one.
    assert "UPDATE_BEFORE" not in {each[0] for each in changes(table, identifier_columns=["id"])}
    second = table.snapshots()[-1].snapshot_id
    with table.new_row_delta() as delta:
        delta.delete_equal(arrow([row(2)]).select(["id"]), ["id"])
    assert changes(table, from_snapshot_id_exclusive=second) == [("DELETE", 0, 2)]


def test_a_compaction_changes_nothing_and_has_no_number(table: Table) -> None:
    table.append(numbered(0, 2))
    table.append(numbered(2, 4))
    old = [task.file for task in table.scan().plan_files()]
    with table.rewrite_files() as rewrite:
        for file in old:
            rewrite.delete_file(file)
        for file in write_files(table, numbered(0, 4)):
            rewrite.add_file(file)
    table.delete("id = 0")
    assert table.snapshots()[2].operation == "replace"
    assert changes(table)[4:] == [("DELETE", 2, 0)]


def write_files(table: Table, rows: pa.Table) -> Iterable[Any]:
    from hms_iceberg.arrow.writing.write import write_data_files

    return write_data_files(table.metadata, table.storage, rows)


def test_a_filter_shows_the_changes_of_rows_that_match(table: Table) -> None:
    table.append(numbered(0, 6))
    start = table.snapshots()[-1].snapshot_id
    table.update({"amount": 100}, "id in (1, 4)")
    found = table.changelog_scan(
        from_snapshot_id_exclusive=start, row_filter="amount >= 100 or id = 4", identifier_columns=["id"]
    ).to_arrow()
    kinds = list(zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True))
    assert kinds == [(4, "UPDATE_BEFORE"), (4, "UPDATE_AFTER"), (1, "INSERT")]


def test_lineage_and_position_can_be_read_and_row_ids_identify_rows(tmp_path: Path) -> None:
    table = create(tmp_path, 3, "merge-on-read")
    table.append(numbered(0, 3))
    start = table.snapshots()[-1].snapshot_id
    table.update({"id": 40}, "id = 1")
    scan = table.changelog_scan(
        from_snapshot_id_exclusive=start, selected_fields=("id", "_row_id"), identifier_columns=["_row_id"]
    )
    assert scan.to_arrow().drop_columns(["_commit_snapshot_id", "_change_ordinal"]).to_pylist() == [
        {"id": 1, "_row_id": 1, "_change_type": "UPDATE_BEFORE"},
        {"id": 40, "_row_id": 1, "_change_type": "UPDATE_AFTER"},
    ]


NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(
        2, "s", StructType(NestedField(3, "a", DoubleType()), NestedField(4, "b", ListType(5, StringType(), False)))
    ),
    NestedField(6, "m", MapType(7, StringType(), 8, LongType(), False)),
)


def test_rows_from_before_there_were_row_ids_are_no_updates_of_one_another(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "copy-on-write")
    table.append(numbered(0, 1))
    start = table.snapshots()[-1].snapshot_id
    table.overwrite(numbered(7, 8))
    with table.transaction() as transaction:
        transaction.upgrade_table_version(3)
    found = changes(table.refresh(), from_snapshot_id_exclusive=start, identifier_columns=["_row_id"])
    assert sorted(found) == [("DELETE", 0, 0), ("INSERT", 0, 7)]


def test_nested_values_are_compared_as_wholes(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "copy-on-write", NESTED)
    nested = [
        {"id": 1, "s": None, "m": None},
        {"id": 2, "s": {"a": None, "b": None}, "m": {}},
        {"id": 3, "s": {"a": float("nan"), "b": ["x", None]}, "m": {"k": 1}},
        {"id": 4, "s": {"a": -0.0, "b": []}, "m": {"k": None}},
    ]
    schema = table.scan().to_arrow().schema
    for each in ({"a": 0.0, "b": []}, {"a": -0.0, "b": []}):
        table.overwrite(pa.Table.from_pylist([*nested[:3], {**nested[3], "s": each}], schema=schema))
    last = table.snapshots()[-2].snapshot_id
    scan = table.changelog_scan(
        from_snapshot_id_exclusive=last, identifier_columns=["id"], selected_fields=("s.a", "m")
    )
    assert scan.to_arrow().select([0, 1, 2]).to_pylist() == [
        {"s": {"a": value}, "m": [("k", None)], "_change_type": kind}
        for value, kind in ((0.0, "UPDATE_BEFORE"), (-0.0, "UPDATE_AFTER"))
    ]
    by_leaf = table.changelog_scan(from_snapshot_id_exclusive=last, identifier_columns=["s.a"])
    assert by_leaf.to_arrow()["_change_type"].to_pylist() == ["UPDATE_BEFORE", "UPDATE_AFTER"]


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "merge-on-read")
    table.append(numbered(0, 3))
    table.delete("id = 1")
    with pytest.raises(InvalidInputError, match=r"nothing identifies a row\. Pass identifier_columns"):
        table.changelog_scan(compute_updates=True).to_arrow()
    first, second = table.snapshots()
    with pytest.raises(InvalidInputError, match="no ancestor"):
        changes(table, from_snapshot_id_exclusive=second.snapshot_id, to_snapshot_id_inclusive=first.snapshot_id)
    with table.expire_snapshots() as expire:
        expire.by_id(first.snapshot_id)
    with pytest.raises(NoSuchSnapshotError, match=f"the snapshot before it, {first.snapshot_id}, has expired"):
        changes(table)
    table.append(numbered(8, 9))
    assert changes(table, from_snapshot_id_exclusive=second.snapshot_id) == [("INSERT", 0, 8)]


def test_appends_are_read_by_themselves(table: Table) -> None:
    table.append(numbered(0, 2))
    first = table.snapshots()[-1].snapshot_id
    table.delete("id = 0")
    table.append(numbered(4, 6))
    scan = table.incremental_append_scan(row_filter="id < 5", selected_fields=("id",))
    assert scan.to_arrow()["id"].to_pylist() == [0, 1, 4]
    assert scan.from_snapshot_id_exclusive(first).to_arrow()["id"].to_pylist() == [4]
    assert scan.from_snapshot_id_inclusive(first).to_snapshot_id_inclusive(first).count() == 2


# ---------------------------------------------------------------------------------------- against full states

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()), NestedField(3, "n", LongType()))
ARROW = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64())])
Row = tuple[Any, ...]


def state(table: Table, snapshot: Snapshot | None) -> Counter[Row]:
    """All rows of a snapshot."""
    if snapshot is None:
        return Counter()
    return Counter(tuple(each.values()) for each in table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist())


def applied(rows: Iterable[dict[str, Any]]) -> Counter[Row]:
    """How many of each row came, less how many went."""
    found: Counter[Row] = Counter()
    for each in rows:
        came = each["_change_type"] in ("INSERT", "UPDATE_AFTER")
        found[(each["id"], each["city"], each["n"])] += 1 if came else -1
    return found


def difference(after: Counter[Row], before: Counter[Row]) -> Counter[Row]:
    found = Counter(after)
    found.subtract(before)
    return Counter({row: count for row, count in found.items() if count})


cities = st.sampled_from(["Bonn", "Rome", None])
rows = st.lists(st.tuples(st.integers(1, 5), cities, st.integers(0, 2)), min_size=1, max_size=4)
steps = st.one_of(
    st.tuples(st.just("append"), rows),
    st.tuples(
        st.just("delete"), st.sampled_from(["id = 1", "id > 2", "city = 'Rome'", "city is null", "n = 1", "true"])
    ),
    st.tuples(st.just("update"), st.sampled_from(["id = 2", "city = 'Bonn'", "n < 2"])),
    st.tuples(st.just("overwrite"), rows),
    st.tuples(st.just("equality"), rows),
    st.tuples(st.just("rewrite"), st.none()),
)


def take(table: Table, step: tuple[str, Any]) -> None:
    """One change of the table."""
    kind, argument = step
    if kind == "delete":
        table.delete(argument)
    elif kind == "update":
        table.update({"n": 7, "city": "Ulm"}, argument)
    elif kind == "rewrite":
        old = list(table.scan().plan_files())
        if old:
            with table.rewrite_files() as rewrite:
                for task in old:
                    rewrite.delete_file(task.file)
                for file in write_files(table, table.scan().to_arrow()):
                    rewrite.add_file(file)
    else:
        df = pa.table(dict(zip(ARROW.names, map(list, zip(*argument, strict=True)), strict=True)), schema=ARROW)
        if kind == "append":
            table.append(df)
        elif kind == "overwrite":
            table.overwrite(df, "id >= 3")
        else:
            with table.new_row_delta() as delta:
                keys = df.slice(0, 2)
                delta.delete_equal(keys.select(["id", "city"]), ["id", "city"])
                delta.add_rows(df)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    version=st.sampled_from([2, 3]),
    mode=st.sampled_from(MODES),
    partitioned=st.booleans(),
    history=st.lists(steps, min_size=1, max_size=5),
    row_filter=st.sampled_from(["true", "id <= 3", "city = 'Bonn'", "n > 0 or city is null"]),
)
def test_a_changelog_is_the_difference_of_the_full_states(
    version: int, mode: str, partitioned: bool, history: list[tuple[str, Any]], row_filter: str
) -> None:
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    modes = {f"write.{each}.mode": mode for each in ("delete", "update")}
    properties = {**QUICK, **modes, "format-version": str(version)}
    spec = BY_CITY if partitioned else UNPARTITIONED
    table = catalog.create_table("db.events", SCHEMA, partition_spec=spec, properties=properties)
    for step in history:
        take(table, step)
    states = [None, *(table.snapshot_by_id(each.snapshot_id) for each in table.snapshots())]
    ordinal = 0
    for before, after in pairwise(states):
        assert after is not None
        wanted = difference(state(table, after), state(table, before))
        if after.operation == "replace":
            assert not wanted
            continue
        scan = table.changelog_scan(
            from_snapshot_id_exclusive=before.snapshot_id if before else None,
            to_snapshot_id_inclusive=after.snapshot_id,
            identifier_columns=["id"],
        )
        found = scan.to_arrow().to_pylist()
        # No row may come and go in one snapshot, so that the number of changes is that of the difference too.
        assert applied(found) == wanted
        assert len(found) == sum(map(abs, wanted.values()))
        whole = table.changelog_scan().to_arrow().filter(pc.field("_change_ordinal") == ordinal).to_pylist()
        assert applied(whole) == wanted
        ordinal += 1
    matching = table.changelog_scan(row_filter=parse(row_filter), net_changes=True).to_arrow().to_pylist()
    final = Counter(tuple(each.values()) for each in table.scan(row_filter).to_arrow().to_pylist())
    assert applied(matching) == final
    assert len(matching) == final.total()
