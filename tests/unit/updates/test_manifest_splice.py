"""Manifests from which files are removed by copying bytes are what encoding every entry anew would give."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pytest

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.expressions.tree import LessThan
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntry, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates import rewrite_manifests
from hms_iceberg.updates.machinery import manifest_filter, manifest_splice
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of, write_added
from hms_iceberg.updates.machinery.manifest_splice import ManifestSplice
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import World, check_snapshot, data_file, metadata, position_deletes

NEW = data_file(900, 909)
SPECS = {
    "unpartitioned": UNPARTITIONED,
    "partitioned": PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "city"), PartitionField(1, 1001, BucketTransform(300), "bucket")
    ),
}


def any_file(rng: random.Random, number: int, partitioned: bool) -> DataFile:
    """A data file with every optional field now and then."""

    def maybe(value: Any) -> Any:
        return rng.choice((value, value, None))

    columns = range(1, rng.choice((1, 2, 4, 90)))
    counts = {column: rng.choice((0, 1, 63, 64, 8191, 8192, 2**40)) for column in columns}
    bounds = {column: rng.randbytes(rng.choice((0, 1, 8, 70))) for column in columns}
    partition = (rng.choice((None, "", "Köln", "x" * 100)), rng.choice((None, 0, 299))) if partitioned else ()
    return data_file(
        number,
        number + rng.randrange(100),
        partition=partition,
        column_sizes=maybe(counts),
        value_counts=maybe(counts),
        null_value_counts=maybe({}),
        nan_value_counts=maybe(counts),
        lower_bounds=maybe(bounds),
        upper_bounds=maybe(bounds),
        split_offsets=maybe(tuple(range(4, 4 + 10**6 * rng.randrange(4), 10**6))),
        sort_order_id=maybe(0),
    )


def left(world: World) -> tuple[list[ManifestEntry], list[ManifestFile]]:
    """All entries of the head, and its manifests without what is theirs alone."""
    snapshot = world.version().metadata.current_snapshot()
    manifests = manifest_list_of(snapshot, world.storage)
    entries = [entry for manifest in manifests for entry in entries_of(manifest, world.storage)]
    own = {"manifest_path": "", "manifest_length": 0, "added_snapshot_id": 0}
    return [replace(entry, snapshot_id=None) for entry in entries], [replace(each, **own) for each in manifests]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("spec", SPECS)
def test_copied_entries_are_as_encoded_ones(version: int, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(version)
    made = metadata(spec=SPECS[spec], format_version=version)
    files = [any_file(rng, number, spec == "partitioned") for number in range(80)]
    spliced = []
    without = ManifestSplice.without

    def noted(*arguments: Any) -> Any:
        spliced.append(without(*arguments))
        return spliced[-1]

    found = []
    for method in (noted, lambda *_: None):
        monkeypatch.setattr(ManifestSplice, "without", method)
        world = World.with_table(made)
        world.append(*files)
        for start in (0, 3):  # the second time from a manifest with files that are gone, and numbers of their own
            world.commit(DeleteFiles(tuple(files[start::16])))
            world.check()
            found.append(left(world))
    assert len(spliced) == 2 and None not in spliced
    assert found[:2] == found[2:]
    entries = found[1][0]
    assert len(entries) == 75 and sum(entry.is_live for entry in entries) == 70


@pytest.mark.parametrize("version", [1, 2, 3])
def test_blocks_in_which_nothing_changes_are_copied_as_they_are(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(version)
    files = [any_file(rng, number, False) for number in range(240)]  # in blocks of about 70
    changes = [DeleteFiles(tuple(some)) for some in (files[:1], files[-1:], files[90:150], files[1:2])]
    pack, encoded, found = manifest_splice.pack_blocks, [0] * 2 * len(changes), []

    def noted(blocks: Iterable[tuple[int, bytes]], codec: str) -> list[tuple[int, bytes]]:
        packed = pack(blocks, codec)
        encoded[len(found)] += sum(count for count, _ in packed)
        return packed

    monkeypatch.setattr(manifest_splice, "pack_blocks", noted)
    for method in (ManifestSplice.without, lambda *_: None):
        monkeypatch.setattr(ManifestSplice, "without", method)
        world = World.with_table(metadata(format_version=version))
        world.append(*files)
        for change in changes:
            world.commit(change)
            found.append(left(world))
        world.check()
    assert found[: len(changes)] == found[len(changes) :]
    # The first turns added files to existing ones; others also leave out what the one before told of.
    assert encoded[0] == 240 and 0 < encoded[1] < 120 and 60 < encoded[2] < 200 and 60 < encoded[3] < 200


@pytest.mark.parametrize("codec", ["null", "snappy"])
def test_blocks_of_another_codec_are_compressed_anew(codec: str) -> None:
    world = World.with_table(metadata(format_version=2))
    files = [data_file(number * 10, number * 10 + 9) for number in range(60)]
    world.append(*files)
    world.commit(DeleteFiles(files[:1]))
    (manifest,) = manifest_list_of(world.version().metadata.current_snapshot(), world.storage)
    reader = fastavro.reader(BytesIO(world.storage.read(manifest.manifest_path)))
    known = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    fastavro.writer(out := BytesIO(), reader.writer_schema, list(reader), codec, 1_000, metadata=known)
    world.storage.files[manifest.manifest_path] = out.getvalue()
    made = world.commit(DeleteFiles(files[-1:]))
    assert world.live_paths() == sorted(file.file_path for file in files[1:-1])
    check_snapshot(made, made.current_snapshot(), world.storage)


def test_large_manifests_are_split_at_about_the_target_size() -> None:
    rng = random.Random(7)
    world = World.with_table(metadata())
    files = [any_file(rng, number, False) for number in range(500)]
    world.append(*files)
    (whole,) = manifest_list_of(world.version().metadata.current_snapshot(), world.storage)
    for parts, count, change in ((7.5, 8, DeleteFiles((files[0], files[-1]))), (1.1, 1, RewriteManifests())):
        target = int(whole.manifest_length / parts)
        world.commit(SetProperties(updates={"commit.manifest.target-size-bytes": str(target)}))
        made = world.commit(change)
        snapshot = made.current_snapshot()
        assert snapshot is not None
        manifests = manifest_list_of(snapshot, world.storage)
        assert len(manifests) == count and max(each.manifest_length for each in manifests) < 2 * target
        assert world.live_paths() == sorted(file.file_path for file in files[1:-1])
        check_snapshot(made, snapshot, world.storage)


def test_files_go_from_large_manifests_by_a_filter_and_by_name_and_other_manifests_stay() -> None:
    world = World.with_table()
    low, high = ([data_file(first + number, first + number) for number in range(50)] for first in (0, 1000))
    world.append(*low)
    world.append(*high)
    left = {file.file_path for file in [*low, *high]}
    for change, gone in (
        (DeleteFiles(row_filter=LessThan("id", 10)), low[:10]),
        (DeleteFiles((high[7],)), high[7:8]),
        (DeleteFiles((*high[:7], *high[8:])), high),
    ):
        snapshot = world.commit(change).current_snapshot()
        left -= {file.file_path for file in gone}
        assert set(world.live_paths()) == left
        assert snapshot is not None and snapshot.summary["manifests-replaced"] == "1"
        world.check()


def test_many_files_are_written_to_manifests_of_about_the_target_size() -> None:
    files = [data_file(number * 1000, number * 1000 + 7) for number in range(40)]

    def counts(target: float, files: Sequence[DataFile] = files) -> list[int | None]:
        base = metadata(properties={"commit.manifest.target-size-bytes": str(int(target))})
        return [each.added_files_count for each in write_added(files, base, 7, FileWorkspace(InMemoryStorage()))]

    (whole,) = write_added(files, metadata(), 7, FileWorkspace(InMemoryStorage()))
    size = whole.manifest_length
    assert counts(size / 1.2) == [40] and counts(size / 1.3) == [20, 20] and counts(size / 3.9) == [10] * 4
    assert counts(0) == [1] * 40 and counts(1, files[:1]) == [1]


def with_other_field(data: bytes, kind: Any = "string", value: Any = "kept") -> bytes:
    """The manifest as a writer leaves it that knows a field more."""
    reader = fastavro.reader(BytesIO(data))
    schema = json.loads(reader.metadata["avro.schema"])
    record = next(field["type"] for field in schema["fields"] if field["name"] == "data_file")
    record["fields"].append({"name": "other", "type": kind, "field-id": 9999})
    records = [{**each, "data_file": {**each["data_file"], "other": value}} for each in reader]
    metadata = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    out = BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata=metadata)
    return out.getvalue()


def test_few_entries_are_encoded_anew_unless_they_have_fields_that_nobody_knows() -> None:
    world = World.with_table(metadata(format_version=2))
    world.append(*(data_file(number * 10, number * 10 + 9) for number in range(5)))
    base = world.version().metadata
    (manifest,) = manifest_list_of(base.current_snapshot(), world.storage)
    data = world.storage.read(manifest.manifest_path)
    gone, workspace = {world.live_paths()[0]}, FileWorkspace(world.storage)
    assert ManifestSplice(manifest, base, data).without(gone, 7, workspace) is None
    written = ManifestSplice(manifest, base, with_other_field(data)).without(gone, 7, workspace)
    assert written is not None
    ((kept,), (removed,)) = written
    entries = list(fastavro.reader(BytesIO(world.storage.read(kept.manifest_path))))
    assert [entry["data_file"]["other"] for entry in entries] == ["kept"] * 5
    assert [entry["status"] for entry in entries] == [2, 0, 0, 0, 0]
    assert removed.file_path == world.live_paths()[0]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("count", [5, 50], ids=["few", "many"])
def test_a_manifest_of_an_older_format_is_encoded_anew(version: int, count: int) -> None:
    world = World.with_table(metadata(format_version=version))
    files = [data_file(number * 10, number * 10 + 9) for number in range(count)]
    world.append(*files)
    world.commit(SetProperties(updates={"format-version": str(version + 1)}))
    world.append(data_file(1000, 1009))
    world.commit(DeleteFiles((files[1],)))
    assert [entry.data_file.first_row_id is not None for entry in world.live()] == [version == 2] * count
    world.check()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("spec", SPECS)
def test_manifests_put_together_are_as_encoded_ones(version: int, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(version)
    made = metadata(spec=SPECS[spec], format_version=version)
    files = [any_file(rng, number, spec == "partitioned") for number in range(80)]
    deletes = [position_deletes(file) for file in files[:20]] if version == 2 else []
    rewrite = rewrite_manifests.cluster_manifests
    clustered = []

    def noted(*arguments: Any) -> Any:
        clustered.append(rewrite(*arguments))
        return clustered[-1]

    found = []
    for function in (noted, lambda *_: None):
        monkeypatch.setattr(rewrite_manifests, "cluster_manifests", function)
        world = World.with_table(made)
        for start in range(0, 80, 16):
            world.append(*files[start : start + 16])
        world.commit(DeleteFiles(files[40:60]))  # entries that only tell of a removal
        if deletes:
            world.commit(RowDelta(added=tuple(deletes[:10])))
            world.commit(RowDelta(added=tuple(deletes[10:])))
        by_snapshot = {each.snapshot_id: number for number, each in enumerate(world.version().metadata.snapshots)}
        chosen = ("bucket",) if spec == "partitioned" else ()
        world.commit(RewriteManifests(content=None, cluster_by=chosen))
        world.check()
        snapshot = world.version().metadata.current_snapshot()
        listed = manifest_list_of(snapshot, world.storage)
        entries = [
            replace(entry, snapshot_id=by_snapshot[entry.snapshot_id])
            for manifest in listed
            for entry in entries_of(manifest, world.storage)
        ]
        own = {"manifest_path": "", "manifest_length": 0, "added_snapshot_id": 0}
        found.append((entries, [replace(each, **own) for each in listed], snapshot.summary["entries-processed"]))
    assert None not in clustered and len(clustered) == 1 + bool(deletes)
    assert found[0] == found[1] and len(found[0][0]) == 60 + len(deletes)
    if spec == "partitioned":
        buckets = [entry.data_file.partition[1] for entry in found[0][0][:60]]
        assert buckets == sorted(buckets, key=lambda each: (each is not None, each))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("spec", SPECS)
def test_merged_manifests_are_as_encoded_ones(version: int, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(version)
    files = [any_file(rng, number, spec == "partitioned") for number in range(200)]
    merge, merged, found = manifest_splice.merge_spliced, [], []

    def noted(*arguments: Any) -> Any:
        merged.append(merge(*arguments))
        return merged[-1]

    for function in (noted, lambda *_: None):
        monkeypatch.setattr(manifest_filter, "merge_spliced", function)
        world = World.with_table(metadata(spec=SPECS[spec], format_version=version))
        for start in range(0, 150, 50):
            world.append(*files[start : start + 50])
        world.commit(SetProperties({"commit.manifest.min-count-to-merge": "2"}))
        # First two of those that are merged have lost files in the same snapshot, one all of them; then one has, and
        # none.
        for change in (
            Overwrite(tuple(files[150:160]), tuple(files[:60])),
            Overwrite(tuple(files[160:180]), tuple(files[100:110])),
            MergeAppend(tuple(files[180:])),
        ):
            world.commit(change)
            world.check()
            found.append(left(world))
    assert len(merged) == 3 and None not in merged
    assert found[:3] == found[3:]
    told = [(each.added_files_count, each.existing_files_count, each.deleted_files_count) for _, (each,) in found[:3]]
    assert told == [(10, 90, 60), (20, 90, 10), (20, 110, 0)]


def test_manifests_of_an_older_format_are_put_together_with_new_ones() -> None:
    for version in (1, 2):
        world = World.with_table(metadata(format_version=version))
        for upgraded in (None, version + 1, None):
            if upgraded:
                world.commit(SetProperties({"format-version": str(upgraded)}))
            world.append(data_file())
            world.append(data_file())
            world.commit(RewriteManifests())
            world.check()
            snapshot = world.version().metadata.current_snapshot()
            assert snapshot is not None and snapshot.summary["manifests-created"] == "1"
        assert len(world.live()) == 6


KINDS: dict[str, tuple[Any, Any] | None] = {
    "as we write": None,
    "a field": ("string", "kept"),
    "a map": ({"type": "map", "values": "int"}, {}),
}


def foreign(*kinds: str) -> tuple[World, list[DataFile]]:
    """A table of two files in a manifest of each kind."""
    world, files = World.with_table(metadata(properties={"commit.manifest.min-count-to-merge": "2"})), []
    for number, kind in enumerate(kinds):
        files += [data_file(10 * row, 10 * row + 9) for row in (2 * number, 2 * number + 1)]
        snapshot = world.append(*files[-2:]).current_snapshot()
        assert snapshot is not None and snapshot.manifest_list is not None
        new, *listed = manifest_list_of(snapshot, world.storage)
        if more := KINDS[kind]:
            data = with_other_field(world.storage.read(new.manifest_path), *more)
            world.storage.files[new.manifest_path] = data
            new = replace(new, manifest_length=len(data))
            listed_anew, _ = encode_manifest_list([new, *listed], 2, snapshot.snapshot_id, None, 1)
            world.storage.files[snapshot.manifest_list] = listed_anew
    return world, files


@pytest.mark.parametrize(
    "kinds",
    [
        *itertools.combinations_with_replacement(KINDS, 2),
        ("a field",),
        ("as we write", "a field", "as we write"),
    ],
    ids=" and ".join,
)
def test_files_stay_or_go_as_told_whatever_fields_their_manifests_have(kinds: tuple[str, ...]) -> None:
    for change in (
        lambda file: RewriteManifests(),
        lambda file: DeleteFiles((file,)),
        lambda file: MergeAppend((NEW,)),
    ):
        world, files = foreign(*kinds)
        head = world.version().metadata.current_snapshot()
        before = {each.manifest_path for each in manifest_list_of(head, world.storage)}
        update = change(files[0])
        made = world.commit(update)
        expected = [*files[isinstance(update, DeleteFiles) :], *update.new_files]
        assert world.live_paths() == sorted(file.file_path for file in expected)
        snapshot = made.current_snapshot()
        assert snapshot is not None
        check_snapshot(made, snapshot, world.storage)
        after = {each.manifest_path for each in manifest_list_of(snapshot, world.storage)}
        assert snapshot.summary["manifests-replaced"] == str(len(before - after))


def test_manifests_of_earlier_snapshots_of_a_transaction_stay_when_a_later_one_merges_them() -> None:
    world = World.with_table(metadata(properties={"commit.manifest.min-count-to-merge": "2"}))
    world.commit(*(MergeAppend((data_file(),)) for _ in range(3)))
    assert len(world.version().metadata.snapshots) == 3
    world.check()


def test_merging_keeps_fields_that_nobody_knows() -> None:
    world = World.with_table(metadata(format_version=2, properties={"commit.manifest.min-count-to-merge": "3"}))
    for number in range(2):
        world.append(data_file(number * 10, number * 10 + 9))
    for manifest in manifest_list_of(world.version().metadata.current_snapshot(), world.storage):
        world.storage.files[manifest.manifest_path] = with_other_field(world.storage.read(manifest.manifest_path))
    known = [data_file(number * 10, number * 10 + 9) for number in range(2, 5)]
    world.append(known[0])
    world.commit(MergeAppend((known[1],)))
    assert len(world.live()) == 4
    others = []
    for manifest in manifest_list_of(world.version().metadata.current_snapshot(), world.storage):
        found = list(fastavro.reader(BytesIO(world.storage.read(manifest.manifest_path))))
        others.append([(entry["data_file"].get("other"), entry["status"]) for entry in found])
    assert sorted(others, key=len) == [[(None, 1), (None, 0)], [("kept", 0), ("kept", 0)]]
    world.commit(MergeAppend((known[2],)))
    assert len(world.live()) == 5
    last = world.version().metadata
    check_snapshot(last, last.current_snapshot(), world.storage)


def test_only_files_that_are_there_are_found_in_a_manifest_and_only_with_their_ages() -> None:
    world = World.with_table(metadata(format_version=2))
    files = [data_file(number * 10, number * 10 + 9) for number in range(50)]
    world.append(*files)
    world.commit(DeleteFiles(files[:1]))
    base = world.version().metadata
    (manifest,) = manifest_list_of(base.current_snapshot(), world.storage)
    data = world.storage.read(manifest.manifest_path)
    splice = ManifestSplice(manifest, base, data)
    assert not splice.holds({files[0].file_path}) and splice.holds({files[1].file_path})
    assert sorted(splice.live().frame["file_path"]) == world.live_paths()
    reader = fastavro.reader(BytesIO(data))
    records = [{**each, "sequence_number": None} for each in reader]
    metadata_of = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    fastavro.writer(out := BytesIO(), reader.writer_schema, records, codec="deflate", metadata=metadata_of)
    with pytest.raises(CorruptManifestError, match="has no sequence number"):
        ManifestSplice(manifest, base, out.getvalue()).live()
