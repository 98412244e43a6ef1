"""Repair: every kind of file of a table lost, cut, changed or exchanged; nothing is made worse, and losses are told."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    CommitConflictError,
    CorruptMetadataError,
    IcebergError,
    InvalidInputError,
    MissingFileError,
)
from hms_iceberg.maintenance import check_table, remove_orphan_files
from hms_iceberg.maintenance.repair import RepairResult, repair_table, undo_repair
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntry, ManifestFile
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.snapshots_and_refs import Summary
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from tests.support.file_damages import DAMAGES
from tests.support.hdfs_path import copy_file, local_path, set_changed
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.spread import ALL
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("city", pa.string())])
NAME = ("db", "events")


class Place:
    """A catalog in a folder with a table of three appends and a deletion of rows, and another table beside it."""

    def __init__(self, folder: Path, version: int = 2) -> None:
        self.folder = folder
        self.metastore = InMemoryMetastore()
        self.catalog = Catalog("memory", self.metastore, ArrowStorage({}), {"warehouse": str(folder)})
        self.catalog.create_namespace("db", {"location": str(folder / "db")})
        self.table, self.other = (
            self._made("events", version, "Bern"),
            self._made("other", version, "Reykjavik", "Bern"),
        )
        self.rows = self.ids()

    def _made(self, name: str, version: int, *last: str) -> Table:
        mode = "merge-on-read" if version > 1 else "copy-on-write"
        properties = {**QUICK, "format-version": str(version), "write.delete.mode": mode}
        table = self.catalog.create_table(f"db.{name}", ARROW, properties=properties)
        table.append(pa.table({"id": [1, 2, 3, 4], "city": ["Oslo", "Oslo", "Rome", None]}, schema=ARROW))
        table.append(pa.table({"id": [5, 6], "city": ["Oslo", "Bern"]}, schema=ARROW))
        table.delete(f"id <= {len(last)}")
        table.append(pa.table({"id": [7] * len(last), "city": last}, schema=ARROW))
        table.maintenance.compute_table_stats()
        return table

    def ids(self) -> list[int]:
        """The rows of the table."""
        return sorted(self.catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist())

    def repair(self, **options: bool) -> RepairResult:
        """Repairs the table."""
        return repair_table(self.catalog, ".".join(NAME), **options)

    def files(self) -> dict[str, bytes]:
        """All files of the folder."""
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def check(self) -> list[str]:
        """What the check finds, opening every file."""
        try:
            return [
                str(each) for each in check_table(self.catalog.load_table("db.events"), record_counts=True).findings
            ]
        except IcebergError as error:
            return [str(error)]


# ------------------------------------------------------------------------------------------------- the matrix


def _manifest(table: Table, content: ManifestContent) -> str:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return next(each.manifest_path for each in snapshot.manifests(table.io) if each.content is content)


def _equality_delete(table: Table) -> str:
    """Deletes rows by their keys, fewer in one table than in the other; the file of it."""
    keys = [4] * table.scan("id = 7").count()
    table.new_row_delta().delete_equal(pa.table({"id": keys}), ["id"]).commit()
    return str(table.inspect.delete_files().filter(pc.field("content") == 2)["file_path"][0].as_py())


def _partition_statistics(table: Table) -> str:
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    file = table.maintenance.compute_partition_stats()
    assert file is not None
    return file.statistics_path


def _data(table: Table, position: int) -> str:
    return sorted(task.file.file_path for task in table.scan().plan_files())[position]


KINDS: dict[str, Callable[[Table], str]] = {
    "metadata": lambda table: table.metadata_location,
    "newest list": lambda table: str(table.snapshots()[-1].manifest_list),
    "list before": lambda table: str(table.snapshots()[-2].manifest_list),
    "first list": lambda table: str(table.snapshots()[0].manifest_list),
    "data manifest": lambda table: _manifest(table, ManifestContent.DATA),
    "delete manifest": lambda table: _manifest(table, ManifestContent.DELETES),
    "data file": lambda table: next(iter(table.scan("id = 7").plan_files())).file.file_path,
    "delete file": lambda table: table.inspect.delete_files()["file_path"][0].as_py(),
    "equality delete file": _equality_delete,
    "statistics": lambda table: table.metadata.statistics[0].statistics_path,
    "partition statistics": _partition_statistics,
}


# What of the rows is left, and whether anything has to be accepted as lost; other kinds lose nothing.
LOSSES: dict[str, Callable[[list[int]], list[int]]] = {
    "metadata": lambda rows: rows,
    "delete file": lambda rows: [1, *rows],
    "equality delete file": lambda rows: rows,
    "data file": lambda rows: [each for each in rows if each != 7],
}


# Two damages of each kind of file, those of its neighbour the other two; HMS_ICEBERG_TESTS=all tries all of them.
CASES = [
    (kind, damage, version)
    for (place, kind), (number, damage) in itertools.product(enumerate(KINDS), enumerate(DAMAGES))
    for version in (2, 3)
    if ALL or ((place + number) % 2 == 0 and version == 2 + (place // 2 + number // 2) % 2)
]


@pytest.mark.parametrize(("kind", "damage", "version"), CASES)
def test_damage_is_found_and_repaired_and_nothing_is_made_worse(
    kind: str, damage: Callable[[Path, Path], None], version: int, tmp_path: Path
) -> None:
    place = Place(tmp_path, version)
    location = KINDS[kind](place.table)
    damage(local_path(location), local_path(KINDS[kind](place.other)))
    if kind == "metadata":  # what a Hive Metastore keeps in its row
        _say(place, uuid=str(place.table.metadata.table_uuid))
    before = place.files()
    assert place.check(), "the check finds nothing"

    planned = place.repair(record_counts=True).plan
    assert place.files() == before, "a dry run changes something"
    assert not planned.is_sound and not planned.hopeless
    assert bool(planned.refused) is (kind in LOSSES), str(planned)
    assert all(step.loses for step in planned.refused) and location in str(planned)

    safe = place.repair(dry_run=False, record_counts=True)
    assert (safe.journal is None) is (kind in LOSSES)
    if kind in LOSSES:
        assert place.files() == before, "what loses something is done without being accepted"
    result = place.repair(dry_run=False, accept_loss=True, record_counts=True)
    assert {name: data for name, data in place.files().items() if name in before} == before
    assert place.ids() == LOSSES.get(kind, list)(place.rows), str(result.plan)
    if not kind.endswith(" file"):  # snapshots before still name those
        assert place.check() == []
    assert place.repair(record_counts=True).plan.is_sound
    if kind != "metadata":
        after = place.catalog.load_table("db.events").metadata
        assert after.metadata_log[-1].metadata_file == place.table.metadata_location, "one damage, one new version"
        assert len(after.snapshots) <= len(place.table.snapshots()) + 1
        undo_repair(place.catalog, NAME, dry_run=False)
        assert place.metastore.load(NAME).metadata_location == place.table.metadata_location
        assert str(place.repair(record_counts=True).plan) == str(planned)
        place.repair(dry_run=False, accept_loss=True, record_counts=True)
    place.catalog.load_table("db.events").append(pa.table({"id": [8], "city": ["Rome"]}, schema=ARROW))
    assert 8 in place.ids()


def _say(place: Place, location: str = "", **parameters: str) -> None:
    row = place.metastore.load(NAME)
    place.metastore._rows[NAME] = replace(
        row, properties={**row.properties, **parameters}, location=location or row.location
    )


# ------------------------------------------------------------------------------------------- single damages


def test_lists_of_all_snapshots_are_made_anew_where_manifests_are_whole(tmp_path: Path) -> None:
    place = Place(tmp_path)
    before = {each.snapshot_id: each.manifests(place.table.io) for each in place.table.snapshots()}
    for snapshot in place.table.snapshots():
        local_path(str(snapshot.manifest_list)).unlink()
    assert len(place.repair(dry_run=False).plan.steps) == 4
    table = place.catalog.load_table("db.events")
    after = {each.snapshot_id: each.manifests(table.io) for each in table.snapshots()}
    assert {key: set(rows) for key, rows in after.items()} == {key: set(rows) for key, rows in before.items()}
    assert place.ids() == place.rows and place.check() == []


def test_a_manifest_is_made_anew_from_one_that_carries_its_files_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    first = place.table.snapshots()[0]
    (manifest,) = first.manifests(place.table.io)
    entries = manifest.fetch_manifest_entry(place.table.io)
    place.table.rewrite_manifests().commit()
    local_path(manifest.manifest_path).unlink()
    assert "from later manifests" in str(place.repair(dry_run=False).plan)
    table = place.catalog.load_table("db.events")
    (made,) = table.snapshots()[0].manifests(table.io)
    assert made.fetch_manifest_entry(table.io) == entries
    assert table.scan(snapshot_id=first.snapshot_id).count() == 4 and place.check() == []


def test_a_manifest_whose_files_are_not_the_only_unknown_ones_is_left_out_only_with_consent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    local_path(_manifest(place.table, ManifestContent.DATA)).unlink()
    copy_file(local_path(_data(place.table, 0)), tmp_path / "db" / "events" / "data" / "orphan.parquet")
    (step,) = place.repair().plan.refused
    assert step.kind == "manifest" and step.loses is not None and "data files with" in step.loses


def test_a_file_of_a_failed_attempt_is_not_taken_for_data_without_consent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    lost = place.table.scan("id = 7").plan_files()
    (file,) = [local_path(task.file.file_path) for task in lost]
    attempt = pa.table({"id": [99], "city": ["a city that is longer than the one that was lost"]}, schema=ARROW)
    place.other.append(attempt)  # as many files and rows
    (written,) = [task.file.file_path for task in place.other.scan("id = 99").plan_files()]
    local_path(_manifest(place.table, ManifestContent.DATA)).unlink()
    file.unlink()
    copy_file(local_path(written), file.with_name("attempt.parquet"))
    before = place.files()
    result = place.repair(dry_run=False)
    (step,) = result.plan.refused
    assert result.journal is None and place.files() == before, str(result.plan)
    assert step.kind == "manifest" and step.loses is not None
    assert "files-size" in step.loses and "1 files may be of a failed attempt" in step.loses
    place.repair(dry_run=False, accept_loss=True)
    assert 99 in place.ids() and place.check() == []


def test_files_of_another_partition_are_not_taken_for_those_of_a_manifest_without_consent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    table = place.catalog.create_table(
        "db.parts",
        ARROW,
        partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city")),
        properties=QUICK,
    )
    sizes = []
    for city in ("Oslo", "Rome"):
        table.append(pa.table({"id": [1], "city": [city]}, schema=ARROW))
        sizes.append(next(iter(table.scan(f"city = '{city}'").plan_files())).file)
    assert sizes[0].file_size_in_bytes == sizes[1].file_size_in_bytes
    local_path(_manifest(table, ManifestContent.DATA)).unlink()  # of Rome
    attempt = local_path(sizes[1].file_path.replace("city=Rome", "city=Oslo"))
    local_path(sizes[1].file_path).unlink()
    copy_file(local_path(sizes[0].file_path), attempt)
    (step,) = repair_table(place.catalog, ("db", "parts")).plan.refused
    assert "of other partitions" in str(step.loses)


def test_a_snapshot_that_nothing_tells_of_goes_and_its_branch_goes_back(tmp_path: Path) -> None:
    place = Place(tmp_path)
    last = place.table.snapshots()[-1]
    place.table.manage_snapshots().create_tag(last.snapshot_id, "kept").commit()
    own = [each for each in last.manifests(place.table.io) if each.added_snapshot_id == last.snapshot_id]
    for location in (str(last.manifest_list), *(each.manifest_path for each in own)):
        local_path(location).unlink()
    (step,) = place.repair().plan.refused
    assert f"goes back to snapshot {place.table.snapshots()[-2].snapshot_id}" in str(step) and "tag kept" in str(step)
    place.repair(dry_run=False, accept_loss=True)
    assert place.ids() == [each for each in place.rows if each != 7]
    assert place.catalog.load_table("db.events").metadata.refs.keys() == {"main"}


def test_wrong_summaries_and_rows_of_the_metastore_are_mended(tmp_path: Path) -> None:
    place = Place(tmp_path)
    metadata = place.table.metadata
    last = metadata.snapshots[-1]
    wrong = replace(last, summary=Summary.of({**last.summary, "total-records": "99", "added-data-files": "7"}))
    location = f"{metadata.location}/metadata/00099-wrong.metadata.json"
    metadata = replace(metadata, snapshots=(*metadata.snapshots[:-1], wrong))
    local_path(location).write_bytes(metadata_to_json(metadata))
    with place.metastore.lease(NAME, {}) as lease:
        lease.swap(MetadataVersion(lease.load().metadata_location, metadata), MetadataVersion(location, metadata))
    _say(place, **{"current-snapshot-id": "17"})
    told = str(place.repair(dry_run=False).plan)
    assert "total-records=99 and not" in told and "added-data-files=7 and not 1" in told
    assert "row says current-snapshot-id 17" in told
    assert place.check() == [] and place.ids() == place.rows


def test_a_sound_table_has_nothing_to_repair(tmp_path: Path) -> None:
    place = Place(tmp_path)
    before = place.files()
    result = place.repair(dry_run=False, accept_loss=True, record_counts=True)
    assert result.plan.is_sound and result.journal is None and place.files() == before
    assert str(result.plan) == "db.events: nothing to repair"
    data = local_path(_data(place.table, 0))
    data.write_bytes(bytes(data.stat().st_size))
    assert place.repair().plan.is_sound, "files are opened only where that is asked for"
    assert not place.repair(record_counts=True).plan.is_sound


def test_references_that_contradict_the_rest_are_put_right(tmp_path: Path) -> None:
    place = Place(tmp_path)
    file = local_path(place.table.metadata_location)
    members = json.loads(file.read_text())
    last = members["snapshots"][-1]["snapshot-id"]
    members["refs"]["audit"] = {"snapshot-id": 17, "type": "tag"}
    members["refs"]["main"]["snapshot-id"] = members["snapshots"][0]["snapshot-id"]
    members["last-sequence-number"] = 2
    file.write_text(json.dumps(members))
    (step,) = place.repair().plan.refused
    assert step.loses == "the tag audit"
    told = str(place.repair(dry_run=False, accept_loss=True).plan)
    assert f"The branch main points at snapshot {last}" in told and "The last sequence number is 4" in told
    assert place.ids() == place.rows and place.check() == []


def test_two_files_of_one_number_are_not_chosen_between(tmp_path: Path) -> None:
    place = Place(tmp_path)
    newest = local_path(place.table.metadata_location)
    before = sorted(path for path in newest.parent.glob("*.metadata.json") if path != newest)[-1]
    copy_file(before, before.with_name(before.name[:6] + "never-committed.metadata.json"))
    newest.unlink()
    plan = place.repair(accept_loss=True).plan
    assert len(plan.hopeless) == 1 and not plan.steps


def test_a_file_that_may_never_have_been_committed_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    newest = local_path(place.table.metadata_location)
    before = sorted(path for path in newest.parent.glob("*.metadata.json") if path != newest)[-1]
    copy_file(before, before.with_name(before.name[:6] + "never-committed.metadata.json"))
    before.write_text("{")
    newest.unlink()
    plan = place.repair(accept_loss=True).plan
    assert len(plan.hopeless) == 1 and not plan.steps


def test_a_row_that_names_a_version_before_the_one_that_it_tells_of_gets_that_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    newest = place.table.metadata
    assert newest.current_snapshot_id is not None
    row = place.metastore.load(NAME)
    before = str(newest.metadata_log[1].metadata_file)
    place.metastore._rows[NAME] = replace(row, metadata_location=before)
    _say(place, uuid=str(newest.table_uuid), **{"current-snapshot-id": str(newest.current_snapshot_id)})
    assert place.ids() != place.rows
    (step,) = place.repair(dry_run=False).plan.steps
    assert step.kind == "metastore row" and step.loses is None and place.table.metadata_location in str(step)
    assert place.ids() == place.rows and place.check() == []


@pytest.mark.parametrize("uuids", [True, False], ids=["uuid", "location"])
@pytest.mark.parametrize("current", [True, False], ids=["snapshot known", "snapshot unknown"])
def test_a_row_that_names_the_file_of_another_table_gets_its_own_newest_again(
    uuids: bool, current: bool, tmp_path: Path
) -> None:
    place = Place(tmp_path, 2 if uuids else 1)
    newest = place.table.metadata_location
    for path in tmp_path.rglob("*.metadata.json") if not uuids else ():  # as of tables of old writers
        members = json.loads(path.read_text())
        del members["table-uuid"]
        path.write_text(json.dumps(members))
    _say(place, location=place.table.location(), previous_metadata_location=newest.replace("/00004", "/00003"))
    if uuids:
        _say(place, uuid=str(place.table.metadata.table_uuid))
    if current:
        _say(place, **{"current-snapshot-id": str(place.table.current_snapshot().snapshot_id)})
    row = place.metastore.load(NAME)
    place.metastore._rows[NAME] = replace(row, metadata_location=place.other.metadata_location)
    (found,) = place.check()
    assert "is that of another table" in found and ("UUID" if uuids else "location") in found
    plan = place.repair().plan
    (step,) = plan.steps if current else plan.refused
    assert f"gets its own newest version again, {newest}" in str(step) and bool(step.loses) is not current
    place.repair(dry_run=False, accept_loss=True)
    assert place.ids() == place.rows and place.check() == []


def test_without_any_whole_version_nothing_is_done(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for path in (tmp_path / "db" / "events" / "metadata").glob("*.metadata.json"):
        path.unlink()
    result = place.repair(dry_run=False, accept_loss=True)
    assert result.journal is None and len(result.plan.hopeless) == 1
    with pytest.raises((MissingFileError, CorruptMetadataError)):
        place.catalog.load_table("db.events")


def test_a_table_that_changes_while_it_is_repaired_is_left_as_it_is(tmp_path: Path) -> None:
    place = Place(tmp_path)
    local_path(str(place.table.snapshots()[0].manifest_list)).unlink()
    rows: list[TablePointer] = [place.metastore.load(NAME)]
    place.catalog.load_table("db.events").append(pa.table({"id": [8], "city": ["Rome"]}, schema=ARROW))

    class Late(InMemoryMetastore):
        """Shows the row as it was when it is asked first."""

        def load(self, identifier: tuple[str, ...]) -> TablePointer:
            return rows.pop() if rows else place.metastore.load(identifier)

    catalog = Catalog("late", Late(), ArrowStorage({}), {})
    catalog.create_namespace("db", {})
    with pytest.raises(CommitConflictError, match="changed meanwhile"):
        repair_table(catalog, NAME, dry_run=False)
    assert 8 in place.ids()


def test_the_journal_says_what_was_and_what_is_done(tmp_path: Path) -> None:
    place = Place(tmp_path)
    local_path(str(place.table.snapshots()[1].manifest_list)).unlink()
    local_path(_data(place.table, 0)).unlink()
    result = place.repair(dry_run=False, accept_loss=True)
    assert result.journal is not None
    before = local_path(place.table.metadata_location)
    assert local_path(result.journal.replace(".json", ".before")).read_bytes() == before.read_bytes()
    said = json.loads(local_path(result.journal).read_text())
    assert (said["table"], said["metadata-location"], said["follows"]) == ("db.events", str(before), str(before))
    assert said["row"]["metadata_location"] == str(before)
    assert [step["kind"] for step in said["steps"]] == ["manifest list", "files"]
    assert said["writes"] == list(result.plan.files) and len(said["writes"]) == 1
    assert said["removes"] == {"main": [_data(place.table, 0)]}


# -------------------------------------------------------------------------------------- deletes, duplicates, undo


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("content", ManifestContent)
def test_manifests_beside_equality_deletes_are_made_anew(
    version: int, content: ManifestContent, tmp_path: Path
) -> None:
    place = Place(tmp_path, version)
    place.table.new_row_delta().delete_equal(pa.table({"id": [2, 6]}), ["id"]).commit()
    place.table.append(pa.table({"id": [6], "city": ["Oslo"]}, schema=ARROW))  # which they do not delete
    rows = place.ids()
    assert rows == [3, 4, 5, 6, 7]
    damaged = [each for each in manifests(place) if each.content is content]
    entries = {each.added_snapshot_id: each.fetch_manifest_entry(place.table.io) for each in damaged}
    local_path(damaged[0].manifest_path).unlink()
    plan = place.repair(dry_run=False).plan
    assert "from the footers" in str(plan) and not plan.refused, str(plan)
    assert place.ids() == rows and place.check() == []
    after = {each.added_snapshot_id: each.fetch_manifest_entry(place.table.io) for each in manifests(place)}
    for snapshot_id, before in entries.items():
        assert [_without_bounds(each) for each in after[snapshot_id]] == [_without_bounds(each) for each in before]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("condition", "told"), [("id in (8, 9)", True), ("id = 8", False)], ids=["told", "equal"])
def test_two_lost_delete_manifests_share_their_files_where_only_one_way_fits(
    version: int, condition: str, told: bool, tmp_path: Path
) -> None:
    place = Place(tmp_path, version)
    place.table.append(pa.table({"id": [8, 9, 10], "city": ["Oslo"] * 3}, schema=ARROW))
    place.table.delete(condition)
    rows = place.ids()
    damaged = [each for each in manifests(place) if each.content is ManifestContent.DELETES]
    assert len(damaged) == 2
    entries = {each.added_snapshot_id: each.fetch_manifest_entry(place.table.io) for each in damaged}
    for each in damaged:
        local_path(each.manifest_path).unlink()
    plan = place.repair(dry_run=False).plan
    if told:
        assert not plan.refused and place.ids() == rows and place.check() == []
        for each in manifests(place):
            if each.content is ManifestContent.DELETES:
                after = each.fetch_manifest_entry(place.table.io)
                assert list(map(_without_bounds, after)) == list(map(_without_bounds, entries[each.added_snapshot_id]))
    else:  # one deletes as many rows as the other
        assert len(plan.refused) == 2 and not plan.steps, str(plan)


def manifests(place: Place) -> list[ManifestFile]:
    """The manifests of the newest snapshot."""
    table = place.catalog.load_table("db.events")
    return table.snapshots()[-1].manifests(table.io)


def _without_bounds(entry: ManifestEntry) -> ManifestEntry:
    """Metrics and offsets make reading faster, and may be left out."""
    metrics = "column_sizes value_counts null_value_counts nan_value_counts lower_bounds upper_bounds"
    left_out = dict.fromkeys([*metrics.split(), "split_offsets", "sort_order_id"])
    return replace(entry, data_file=replace(entry.data_file, **left_out))


@pytest.mark.parametrize("version", [2, 3])
def test_files_that_are_in_the_table_twice_stay_once(version: int, tmp_path: Path) -> None:
    place = Place(tmp_path, version)
    (file,) = [task.file for task in place.table.scan("id = 7").plan_files()]
    with place.table.new_fast_append() as append:
        append.append_file(replace(file, first_row_id=None))
    place.table.append(pa.table({"id": [8], "city": ["Rome"]}, schema=ARROW))
    assert place.ids() == [*place.rows, 7, 8] and "is live 2 times" in "".join(place.check())

    plan = place.repair(dry_run=False).plan
    assert plan.steps[0].kind == "duplicates" and not plan.refused, str(plan)
    assert place.ids() == [*place.rows, 8] and place.check() == []
    snapshot = place.catalog.load_table("db.events").snapshots()[-2]
    assert place.table.scan(snapshot_id=place.table.snapshots()[-2].snapshot_id).count() == len(place.rows) + 1
    assert place.catalog.load_table("db.events").scan(snapshot_id=snapshot.snapshot_id).count() == len(place.rows)


def test_a_manifest_that_is_listed_twice_stays_once_where_both_are(tmp_path: Path) -> None:
    place = Place(tmp_path)
    snapshot, listed = place.table.snapshots()[-1], manifests(place)
    data, _ = encode_manifest_list([*listed, listed[0]], 2, snapshot.snapshot_id, snapshot.parent_snapshot_id, 4)
    local_path(str(snapshot.manifest_list)).write_bytes(data)
    assert place.ids() != place.rows
    place.repair(dry_run=False)
    assert place.ids() == place.rows and place.check() == []


def test_a_file_that_came_back_after_rows_of_it_were_deleted_is_taken_out_only_with_consent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (file,) = [task.file for task in place.table.scan("id = 2").plan_files()]  # of which the row 1 is deleted
    with place.table.new_fast_append() as append:
        append.append_file(file)
    assert place.ids() == sorted([*place.rows, 1, 2, 3, 4])
    (step,) = place.repair(dry_run=False).plan.refused
    assert step.loses == "rows of 1 files that were deleted before the file was added again"
    place.repair(dry_run=False, accept_loss=True)
    assert place.ids() == place.rows and place.check() == []


def test_a_repair_is_taken_back_only_as_long_as_nothing_else_changed_the_table(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(InvalidInputError, match="its last change is no repair"):
        undo_repair(place.catalog, NAME)
    local_path(_data(place.table, 0)).unlink()
    local_path(str(place.table.snapshots()[0].manifest_list)).unlink()
    place.repair(dry_run=False, accept_loss=True)  # two versions, one after the other
    undone = undo_repair(place.catalog, NAME)
    assert undone.metadata_location == place.table.metadata_location in str(undone)
    place.catalog.load_table("db.events").append(pa.table({"id": [8], "city": ["Rome"]}, schema=ARROW))
    with pytest.raises(InvalidInputError, match="its last change is no repair"):
        undo_repair(place.catalog, NAME, dry_run=False)
    assert 8 in place.ids()


def test_a_repair_can_be_taken_back_after_the_service_looked_after_the_table(tmp_path: Path) -> None:
    place = Place(tmp_path)
    bad = local_path(str(place.table.snapshots()[0].manifest_list))
    bad.write_bytes(b"damaged")
    place.repair(dry_run=False)
    table = place.catalog.load_table("db.events")
    for _ in range(2):
        for path in tmp_path.rglob("*"):
            set_changed(path, 10**9)
        service = MaintenanceService(place.catalog, ["db.events"], Policies(Policy(remove_orphans_every_ms=0)))
        assert [step.action for step in service.run().steps] == ["remove_orphan_files"]
    before = place.files()
    undo_repair(place.catalog, NAME, dry_run=False)
    assert bad.read_bytes() == b"damaged" and before.keys() == place.files().keys()
    assert place.metastore.load(NAME).metadata_location == place.table.metadata_location
    assert "not an Avro file" in str(place.check())
    table.refresh().set_properties({"a": "1"})
    with pytest.raises(InvalidInputError, match="its last change is no repair"):
        undo_repair(place.catalog, NAME, dry_run=False)


def test_a_repair_can_be_taken_back_where_commits_delete_old_versions(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.table.set_properties(
        {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    )
    for version in range(2):
        place.table.set_properties({"version": str(version)})
    before = local_path(place.table.metadata_location)
    content = before.read_bytes()
    local_path(_data(place.table, 0)).unlink()
    local_path(str(place.table.snapshots()[0].manifest_list)).unlink()
    place.repair(dry_run=False, accept_loss=True)
    assert not before.exists()
    remove_orphan_files(place.catalog.load_table("db.events"), older_than=2**62, nobody_writes=True)
    undo_repair(place.catalog, NAME, dry_run=False)
    assert before.read_bytes() == content
    assert place.metastore.load(NAME).metadata_location == str(before)


def test_a_repair_of_a_lost_metadata_file_is_not_taken_back_to_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    kept = local_path(place.table.metadata_location).read_bytes()
    local_path(place.table.metadata_location).unlink()
    place.repair(dry_run=False, accept_loss=True)
    with pytest.raises(InvalidInputError, match="Restore it first"):
        undo_repair(place.catalog, NAME, dry_run=False)
    local_path(place.table.metadata_location).write_bytes(kept)
    undo_repair(place.catalog, NAME, dry_run=False)
    assert place.ids() == place.rows and place.check() == []
