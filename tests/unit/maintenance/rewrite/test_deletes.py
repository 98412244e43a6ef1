"""Deletes written in another form delete the same rows, and what comes meanwhile keeps applying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance import (
    check_table,
    convert_equality_deletes,
    expire_snapshots,
    remove_dangling_deletes,
    remove_orphan_files,
    rewrite_data_files,
    rewrite_position_delete_files,
)
from hms_iceberg.maintenance.rewrite import convert_deletes
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.table import Table
from tests.support.operations import ARROW, BY_CITY, MERGE_ON_READ, SCHEMA, rows
from tests.support.row_tables import create, other_writer

KEYED = MERGE_ON_READ | {"write.delete.granularity": "partition"}


def content(table: Table) -> list[str]:
    """All rows, sorted."""
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def deletes(table: Table) -> list[DataFile]:
    """The delete files that apply to anything."""
    found = {
        (each.file_path, each.content_offset): each for task in table.scan().plan_files() for each in task.delete_files
    }
    return list(found.values())


def delete_equal(table: Table, **keys: list[Any]) -> None:
    """Deletes the rows that equal these keys in these columns."""
    types = {"id": pa.int64(), "city": pa.string(), "amount": pa.int32()}
    with table.new_row_delta() as delta:
        found = pa.table({name: pa.array(values, types[name]) for name, values in keys.items()})
        delta.delete_equal(found, columns=list(keys))


class Reference:
    """The rows of a table, in a list, with deletes by key as the specification says: null equals null."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def delete(self, **keys: list[Any]) -> None:
        gone = set(zip(*keys.values(), strict=True))
        self.rows = [row for row in self.rows if tuple(row[name] for name in keys) not in gone]


CITIES = st.sampled_from(["Ulm", "Bonn", None])
AMOUNTS = st.sampled_from([None, 0, 1, 2])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(st.integers(0, 5), CITIES, AMOUNTS), min_size=1, max_size=6)),
        st.tuples(st.just("id"), st.lists(st.tuples(st.integers(0, 5)), min_size=1, max_size=3)),
        st.tuples(st.just("amount,city"), st.lists(st.tuples(AMOUNTS, CITIES), min_size=1, max_size=3)),
        st.tuples(st.just("where"), st.sampled_from(["id = 1", "amount is null", "city = 'Ulm'"])),
        st.tuples(st.just("convert"), st.none()),
        st.tuples(st.sampled_from(["rewrite", "compact", "sort", "dangling", "orphans", "expire"]), st.none()),
    ),
    min_size=2,
    max_size=10,
)
WHERE = {
    "id = 1": lambda row: row["id"] == 1,
    "amount is null": lambda row: row["amount"] is None,
    "city = 'Ulm'": lambda row: row["city"] == "Ulm",
}


ACTIONS = {
    "convert": convert_equality_deletes,
    "rewrite": lambda table: rewrite_position_delete_files(table, options={"rewrite-all": True}),
    "compact": lambda table: rewrite_data_files(table, options={"rewrite-all": True}),
    "sort": lambda table: rewrite_data_files(
        table, strategy="sort", sort_order="zorder(id, city)", options={"min-input-files": 2}
    ),
    "dangling": remove_dangling_deletes,
    "orphans": lambda table: remove_orphan_files(table, older_than=2**62, nobody_writes=True),
    "expire": lambda table: expire_snapshots(table, older_than=2**62, retain_last=2),
}


@given(STEPS, st.sampled_from([2, 3]), st.booleans(), st.sampled_from([MERGE_ON_READ, KEYED]))
@settings(max_examples=20)
def test_no_row_comes_or_goes_by_any_sequence(
    new_folder: Callable[[str], Path],
    steps: list[Any],
    version: int,
    partitioned: bool,
    properties: dict[str, str],
) -> None:
    spec = BY_CITY if partitioned else UNPARTITIONED
    table = create(new_folder("t"), version, schema=SCHEMA, spec=spec, **properties)
    reference = Reference()
    seen: dict[int, list[str]] = {}
    for kind, argument in [*steps, ("convert", None), ("rewrite", None), ("compact", None), ("dangling", None)]:
        if kind == "append":
            new = [dict(zip(("id", "city", "amount"), row, strict=True)) for row in argument]
            table.append(pa.Table.from_pylist(new, schema=ARROW))
            reference.rows += new
        elif kind == "where":
            table.delete(argument)
            reference.rows = [row for row in reference.rows if not WHERE[argument](row)]
        elif kind in ACTIONS:
            ACTIONS[kind](table)
            if kind == "convert":
                assert not [each for each in deletes(table) if each.content is DataFileContent.EQUALITY_DELETES]
        else:
            if kind == "id" and partitioned:  # a delete of one partition names it
                kind, argument = "id,city", [(*key, city) for key in argument for city in ("Ulm", "Bonn", None)]
            keys = dict(zip(kind.split(","), map(list, zip(*argument, strict=True)), strict=True))
            delete_equal(table, **keys)
            reference.delete(**keys)
        assert Counter(content(table)) == Counter(map(repr, reference.rows))
        if table.current_snapshot() is not None:
            seen[table.current_snapshot().snapshot_id] = content(table)
    kept = {snapshot.snapshot_id for snapshot in table.snapshots()}
    for snapshot_id in kept & seen.keys():  # what is still there reads as it did
        rows_then = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        assert sorted(map(repr, rows_then)) == seen[snapshot_id]
    assert check_table(table, record_counts=True).findings == ()


@pytest.mark.parametrize("version", [2, 3])
def test_a_conversion_removes_the_deletes_that_it_found_and_no_later_ones(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, version, schema=SCHEMA, **MERGE_ON_READ)
    table.append(rows(0, 1, 2, 3))
    table.append(rows(4, 5, 6, 7))
    delete_equal(table, id=[0, 5, 99])
    other = other_writer(table)
    convert = convert_deletes._DeleteConverter.convert

    def meanwhile(self: Any, *arguments: Any) -> Any:
        found = convert(self, *arguments)
        other.append(rows(0))
        delete_equal(other, id=[1])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(convert_deletes._DeleteConverter, "convert", meanwhile)
        result = convert_equality_deletes(table)
    assert (result.converted_equality_delete_files_count, result.added_delete_files_count) == (1, 2)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3, 4, 6, 7]
    assert [each.content for each in deletes(table)].count(DataFileContent.EQUALITY_DELETES) == 1
    assert table.current_snapshot().summary["operation"] == "replace"


def test_a_data_file_that_goes_meanwhile_keeps_its_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)  # copy-on-write
    table.append(rows(0, 1, 2, 3))
    delete_equal(table, id=[0])
    other = other_writer(table)
    convert = convert_deletes._DeleteConverter.convert

    def meanwhile(self: Any, *arguments: Any) -> Any:
        found = convert(self, *arguments)
        other.delete("id = 2")
        return found

    monkeypatch.setattr(convert_deletes._DeleteConverter, "convert", meanwhile)
    result = convert_equality_deletes(table)
    assert result.converted_equality_delete_files_count == 0 and "removed a data file" in result.failures[0]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_many_position_deletes_become_one_a_partition(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, spec=BY_CITY, **KEYED)
    table.append(pa.concat_tables([rows(1, 2, 3, city="Ulm"), rows(11, 12, 13, city="Bonn")]))
    table.delete("id in (1, 11)")
    table.delete("id in (2, 12)")
    before = content(table)
    with table.transaction() as transaction:
        transaction.set_properties({"write.delete.granularity": "partition"})
    result = rewrite_position_delete_files(table, options={"rewrite-all": True})
    assert result.added_delete_files_count == 2 and content(table) == before
    again = rewrite_position_delete_files(table, where="city = 'Ulm'", options={"rewrite-all": True})
    assert (again.rewritten_delete_files_count, again.added_delete_files_count) == (1, 1)


def test_position_deletes_of_an_upgraded_table_become_vectors(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, **KEYED)
    table.append(rows(1, 2, 3, 4))
    table.append(rows(5, 6, 7, 8))
    table.delete("id in (1, 5)")
    table.delete("id in (2, 6)")
    table.upgrade_table_version(3)
    before = content(table)
    result = rewrite_position_delete_files(table)
    assert result.added_delete_files_count == 2 and content(table) == before
    assert all(each.is_deletion_vector and each.record_count == 2 for each in deletes(table))
    assert rewrite_position_delete_files(table).groups == ()


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    with pytest.raises(InvalidInputError, match=r"delete-file-threshold.*db\.events"):
        rewrite_position_delete_files(table, options={"delete-file-threshold": 1})
    with pytest.raises(InvalidInputError, match="no such branch"):
        convert_equality_deletes(table, branch="nowhere")
