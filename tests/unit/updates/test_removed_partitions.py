"""Files that are removed by partition or filter are found in columns and by summaries, as by looking at each."""

from __future__ import annotations

import itertools
import math
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.data_types import DecimalType, DoubleType, LongType, NestedField, StringType, UUIDType
from hms_iceberg.spec.manifests.manifest_list_avro import PartitionSummary
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery import manifest_splice
from hms_iceberg.updates.machinery.file_matching import FileMatcher
from hms_iceberg.updates.machinery.held_partitions import HeldPartitions
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite, ReplacePartitions
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "x", DoubleType()),
    NestedField(4, "price", DecimalType(9, 2)),
    NestedField(5, "u", UUIDType()),
)


def identity(spec_id: int, *sources: int) -> PartitionSpec:
    names = {field.field_id: field.name for field in SCHEMA.fields}
    fields = (PartitionField(each, 1000 + each, IdentityTransform(), f"p_{names[each]}") for each in sources)
    return PartitionSpec(*fields, spec_id=spec_id)


SPECS = (identity(0), identity(1, 1, 2), identity(2, 3), identity(3, 4, 5))
_VALUES = {
    1: st.sampled_from([None, -5, 0, 3, 10]),
    2: st.sampled_from([None, "", "a", "b", "zz"]),
    3: st.sampled_from([None, -1.5, -0.0, 0.0, 2.0, math.nan, math.inf]),
    4: st.sampled_from([None, *("-1.00", "0.00", "2.50")]),
    5: st.sampled_from([None, uuid.UUID(int=1), uuid.UUID(int=2**127)]),
}


@st.composite
def partitions(draw: st.DrawFn) -> tuple[int, tuple[Any, ...]]:
    spec = draw(st.sampled_from(SPECS))
    values = [draw(_VALUES[field.source_id]) for field in spec.fields]
    typed = [
        Decimal(value) if field.source_id == 4 and value is not None else value
        for field, value in zip(spec.fields, values, strict=True)
    ]
    return spec.spec_id, tuple(typed)


def data(number: int, place: tuple[int, tuple[Any, ...]], low: int = 0, high: int = 9) -> DataFile:
    """A file; one that is partitioned by its numbers has no metrics of these."""
    metrics: dict[str, Any] = {
        "value_counts": {1: 10},
        "null_value_counts": {1: 0},
        "lower_bounds": {1: to_bytes(LongType(), low)},
        "upper_bounds": {1: to_bytes(LongType(), high)},
    }
    return DataFile(
        file_path=f"{LOCATION}/data/{number}",
        file_format="PARQUET",
        record_count=10,
        file_size_in_bytes=100,
        content=DataFileContent.DATA,
        spec_id=place[0],
        partition=place[1],
        **({} if place[0] == 1 else metrics),
    )


def live(metadata: TableMetadata, table: ManifestTable) -> set[str]:
    return set(plan_scan(ScanRequest(metadata), table.storage).files["file_path"])


@given(st.lists(partitions(), min_size=1, max_size=6), st.lists(partitions(), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_a_manifest_is_passed_over_only_if_it_holds_no_file_of_the_partitions(
    held: list[tuple[int, tuple[Any, ...]]], asked: list[tuple[int, tuple[Any, ...]]]
) -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    table.commit(*(data(number, place) for number, place in enumerate(held)))
    some = HeldPartitions(asked, table.metadata)
    keys = {data(0, place).partition_key for place in asked}
    for manifest in table.manifests:
        own = [data(0, place) for place in held if place[0] == manifest.partition_spec_id]
        if any(file.partition_key in keys for file in own):
            assert some.may_be_in(manifest)
        if not any(place[0] == manifest.partition_spec_id for place in asked):
            assert not some.may_be_in(manifest)
        assert HeldPartitions(asked, table.metadata).may_be_in(replace(manifest, partitions=None)) is any(
            place[0] == manifest.partition_spec_id for place in asked
        )


@pytest.mark.parametrize(
    ("held", "asked", "may_be"),
    [
        ([(1, (3, "a"))], [(1, (3, "b"))], False),
        ([(1, (3, "a")), (1, (4, "c"))], [(1, (3, "b"))], True),
        ([(1, (3, "a"))], [(1, (2, "a")), (1, (4, "a"))], False),
        ([(1, (None, "a"))], [(1, (0, "a"))], False),
        ([(1, (0, "a"))], [(1, (None, "a"))], False),
        ([(2, (1.0,))], [(2, (math.nan,))], False),
        ([(2, (math.nan,))], [(2, (1.0,))], False),
        ([(0, ())], [(0, ())], True),
    ],
)
def test_manifests_of_other_partitions_are_passed_over(held: Any, asked: Any, may_be: bool) -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    table.commit(*(data(number, place) for number, place in enumerate(held)))
    assert HeldPartitions(asked, table.metadata).may_be_in(table.manifests[0]) is may_be


@pytest.mark.parametrize("few", [0, 1000], ids=["spliced", "encoded anew"])
@given(st.lists(partitions(), min_size=1, max_size=12), st.lists(partitions(), min_size=1, max_size=2))
@settings(max_examples=10, deadline=None)
def test_a_replacement_removes_the_files_of_its_partitions_and_no_other(
    few: int, held: list[tuple[int, tuple[Any, ...]]], new: list[tuple[int, tuple[Any, ...]]]
) -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    old = [data(number, place) for number, place in enumerate(held)]
    table.commit(*old[: len(old) // 2 + 1])
    if old[len(old) // 2 + 1 :]:
        table.commit(*old[len(old) // 2 + 1 :])
    added = tuple(data(100 + number, place) for number, place in enumerate(new))
    keys = {file.partition_key for file in added}
    everything = any(file.spec_id == 0 for file in added)
    expected = {file.file_path for file in old if not everything and file.partition_key not in keys}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_splice, "_FEW", few)
        made = ReplacePartitions(added).apply(table.metadata, FileWorkspace(table.storage))
    assert live(made, table) == expected | {file.file_path for file in added}


@pytest.mark.parametrize("new", [0.0, -0.0, math.nan, None])
def test_zeros_of_both_signs_are_two_partitions(new: float | None) -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    values = (-0.0, 0.0, math.nan, None, 1.0)
    table.commit(*(data(number, (2, (value,))) for number, value in enumerate(values)))
    added = data(100, (2, (new,)))
    made = ReplacePartitions((added,)).apply(table.metadata, FileWorkspace(table.storage))
    kept = {data(number, (2, (value,))).file_path for number, value in enumerate(values) if repr(value) != repr(new)}
    assert live(made, table) == {*kept, added.file_path}


@pytest.mark.parametrize("few", [0, 1000], ids=["spliced", "encoded anew"])
@pytest.mark.parametrize("row_filter", ["n < 5", "name = 'a'", "n = 3 and name = 'a'", "x is null", "u is not null"])
def test_a_delete_by_filter_removes_whole_files_or_refuses_as_each_file_says(
    monkeypatch: pytest.MonkeyPatch, few: int, row_filter: str
) -> None:
    monkeypatch.setattr(manifest_splice, "_FEW", few)
    refused = removed = 0
    places = [(1, (3, "a")), (1, (3, "b")), (1, (None, "a")), (2, (None,)), (2, (1.0,)), (3, (None, None)), (0, ())]
    for low, high in ((0, 4), (4, 6)):
        for dropped in (0, 3, 6):
            some = [place for number, place in enumerate(places) if number != dropped]
            table = ManifestTable(SCHEMA, *SPECS)
            files = [data(number, place, low, high) for number, place in enumerate(some)]
            table.commit(*files)
            matcher = FileMatcher(table.metadata, parse(row_filter))
            may, must = matcher.may_match(files), matcher.must_match(files)
            update = DeleteFiles(row_filter=parse(row_filter))
            if any(one and not whole for one, whole in zip(may, must, strict=True)):
                with pytest.raises(InvalidInputError, match="some, but not all"):
                    update.apply(table.metadata, FileWorkspace(table.storage))
                partly = [file for file, one, whole in zip(files, may, must, strict=True) if one and not whole]
                update = replace(update, files=tuple(partly))
                refused += 1
            made = update.apply(table.metadata, FileWorkspace(table.storage))
            assert live(made, table) == {file.file_path for file, one in zip(files, may, strict=True) if not one}
            removed += any(may)
    assert removed and refused


def test_files_that_are_removed_by_name_are_found_though_the_summaries_are_wrong() -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    files = [data(number, (1, (number, "a"))) for number in range(3)]
    table.commit(*files[:2])
    lying = [
        replace(
            each,
            partitions=tuple(
                replace(one, lower_bound=to_bytes(kind, high), upper_bound=to_bytes(kind, high))
                for one, kind, high in zip(each.partitions or (), (LongType(), StringType()), (99, "zz"), strict=True)
            ),
        )
        for each in table.manifests
    ]
    table.commit_manifests(lying, 77_000_001)
    made = Overwrite(removed=(files[0],), added=(files[2],)).apply(table.metadata, FileWorkspace(table.storage))
    assert live(made, table) == {files[1].file_path, files[2].file_path}
    with pytest.raises(CommitConflictError, match=r"1 of the files to remove are not in it.*data/9"):
        DeleteFiles(files=(data(9, (1, (0, "a"))),)).apply(table.metadata, FileWorkspace(table.storage))


def test_manifests_of_other_partitions_are_not_read() -> None:
    table = ManifestTable(SCHEMA, *SPECS)
    for number in range(20):
        table.commit(data(number, (1, (number, "a"))))
    read: list[str] = []

    class Counting(FileWorkspace):
        def read(self, location: str) -> bytes:
            read.append(location)
            return super().read(location)

    place = (1, (7, "a"))
    lists = {snapshot.manifest_list for snapshot in table.metadata.snapshots}
    for update in (
        ReplacePartitions((data(100, place),)),
        Overwrite(row_filter=parse("n = 7")),
        Overwrite(removed=(data(7, place),), added=(data(100, place),)),
    ):
        read.clear()
        made = update.apply(table.metadata, Counting(table.storage))
        assert len(set(read) - lists) == 1, update
        kept = manifest_list_of(made.current_snapshot(), table.storage)
        assert sum(each.content is ManifestContent.DATA and each.has_live_files() for each in kept) in (19, 20)


def every_partition(spec: PartitionSpec) -> list[tuple[Any, ...]]:
    values = {
        1: (None, 3, -5),
        2: ("b", "", None, "zz"),
        3: (0.0, math.nan, -0.0, None, math.inf),
        4: (Decimal("2.50"), None, Decimal("-1.00")),
        5: (uuid.UUID(int=2**127), uuid.UUID(int=1), None),
    }
    return list(itertools.product(*(values[field.source_id] for field in spec.fields)))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_summary_of_several_manifests_is_that_of_all_their_partitions(spec: PartitionSpec) -> None:
    kind, places = spec.partition_type(SCHEMA), every_partition(spec)

    def summary(some: list[tuple[Any, ...]]) -> PartitionSummary:
        made = PartitionSummary(kind)
        for place in some:
            made.add(place)
        return made

    for split in range(len(places) + 1):
        joined = summary(places[:split])
        joined.add_summaries(summary(places[split:]).summaries())
        assert joined.summaries() == summary(places).summaries()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_summaries_of_copied_entries_are_those_of_entries_that_are_encoded_anew(
    monkeypatch: pytest.MonkeyPatch, spec: PartitionSpec
) -> None:
    many = every_partition(spec)
    for chosen in filter(None, (many, many[1:], many[-1:], many[1:3])):
        table, found = ManifestTable(SCHEMA, *SPECS), []
        files = [data(number, (spec.spec_id, place)) for number, place in enumerate([*chosen, chosen[0]])]
        table.commit(*files)
        for few in (0, 1000):
            monkeypatch.setattr(manifest_splice, "_FEW", few)
            made = DeleteFiles((files[-1],)).apply(table.metadata, FileWorkspace(table.storage))
            listed = manifest_list_of(made.current_snapshot(), table.storage)
            own = {"manifest_path": "", "manifest_length": 0, "added_snapshot_id": 0}
            found.append([replace(each, **own) for each in listed])
        assert found[0] == found[1]
