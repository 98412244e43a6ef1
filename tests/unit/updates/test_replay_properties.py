"""Random histories of two writers: whatever is acknowledged equals a serial order, and nothing else happened.

The model is a list of rows by file: an operation is a function of that list, as the specification describes it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.expressions.tree import EqualTo
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.updates.machinery.content import Isolation
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite, ReplacePartitions
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.schema.schema_changes import AddColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.table_settings import SetProperties
from tests.support import memory_metastore as outcomes
from tests.support.tables import BY_CITY, World, data_file, deletion_vector, metadata, position_deletes

# Histories a test run; HMS_ICEBERG_EXAMPLES=2000 searches longer.
EXAMPLES = int(os.environ.get("HMS_ICEBERG_EXAMPLES", "25"))
CITIES = ("Bonn", "Köln", "Ulm")
KINDS = (
    "append",
    "merge append",
    "delete city",
    "delete file",
    "overwrite file",
    "replace city",
    "compact",
    "row delta",
    "rewrite manifests",
    "set property",
    "add column",
)


@dataclass
class Model:
    """What the table must hold: live data files, delete files by their data file, properties, columns."""

    files: dict[str, str] = field(default_factory=dict)
    deletes: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)

    def add(self, files: tuple[DataFile, ...]) -> None:
        self.files.update((file.file_path, file.partition[0]) for file in files)

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            del self.files[path]
            self.deletes = {delete: target for delete, target in self.deletes.items() if target != path}


@dataclass
class Step:
    """An update, and what it means to the model."""

    update: Update
    kind: str
    files: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    city: str = ""
    key: str = ""

    def on(self, model: Model) -> None:
        if self.kind == "delete city":
            model.remove([path for path, city in model.files.items() if city == self.city])
        elif self.kind == "replace city":
            # Position deletes of a replaced partition go with it.
            model.remove([path for path, city in model.files.items() if city == self.city])
        else:
            model.remove([file.file_path for file in self.removed])
        if self.kind == "row delta":
            if self.files[0].is_deletion_vector:
                target = self.files[0].referenced_data_file
                model.deletes = {path: each for path, each in model.deletes.items() if each != target}
            model.deletes[self.files[0].file_path] = self.files[0].referenced_data_file or ""
        elif self.kind == "set property":
            model.properties[self.key] = self.city
        elif self.kind == "add column":
            model.columns.append(self.key)
        else:
            model.add(self.files)


def step(world: World, kind: str, pick: int, city: str, number: int) -> Step:
    """A step on what a writer sees now; one that needs a file where there is none is an append."""
    live = [entry.data_file for entry in world.live() if entry.data_file.is_data]
    target = live[pick % len(live)] if live else None
    new = (data_file(number * 10, number * 10 + 9, city),)
    if kind == "delete city":
        return Step(DeleteFiles(row_filter=EqualTo("city", city)), kind, city=city)
    if kind == "replace city":
        return Step(ReplacePartitions(new), kind, new, city=city)
    if kind == "merge append":
        return Step(MergeAppend(new), kind, new)
    if kind == "rewrite manifests":
        return Step(RewriteManifests(), kind)
    if kind == "set property":
        key = f"key-{pick % 3}"
        return Step(SetProperties({key: city}), kind, key=key, city=city)
    if kind == "add column":
        return Step(SchemaUpdate((AddColumn((f"c{number}",), StringType()),)), kind, key=f"c{number}")
    if target is None or kind == "append":
        return Step(FastAppend(new), "append", new)
    if kind == "delete file":
        return Step(DeleteFiles((target,)), kind, removed=(target,))
    same_city = (data_file(number * 10, number * 10 + 9, target.partition[0]),)
    if kind == "overwrite file":
        update = Overwrite(same_city, (target,), isolation=Isolation.SNAPSHOT)
        return Step(update, kind, same_city, (target,))
    if kind == "compact":
        return Step(RewriteFiles((target,), same_city), kind, same_city, (target,))
    if world.version().metadata.format_version < 3:
        delete = (position_deletes(target),)
        return Step(RowDelta(delete), "row delta", delete)
    # A data file has one deletion vector: the new one takes the place of the old.
    vectors = [entry.data_file for entry in world.live() if not entry.data_file.is_data]
    old = tuple(file for file in vectors if file.referenced_data_file == target.file_path)
    vector = (deletion_vector(target),)
    return Step(RowDelta(vector, old), "row delta", vector)


def check(world: World, model: Model) -> None:
    """The table holds what the model holds, and every count in its metadata is right."""
    live = [entry.data_file for entry in world.live()]
    assert {file.file_path: file.partition[0] for file in live if file.is_data} == model.files
    assert {file.file_path: file.referenced_data_file for file in live if not file.is_data} == model.deletes
    version = world.version().metadata
    assert {key: version.properties.get(key) for key in model.properties} == model.properties
    assert [field.name for field in version.schema().fields[3:]] == model.columns
    world.check()


def check_files(world: World) -> None:
    """No manifest, list or metadata file is left that nobody uses, and none that somebody uses is gone."""
    version = world.version()
    used = {version.location, *(entry.metadata_file for entry in version.metadata.metadata_log)}
    for snapshot in version.metadata.snapshots:
        used.add(snapshot.manifest_list or "")
        used |= {manifest.manifest_path for manifest in manifest_list_of(snapshot, world.storage)}
    assert set(world.storage.files) == used


choice = st.tuples(st.sampled_from(KINDS), st.integers(0, 50), st.sampled_from(CITIES))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    version=st.sampled_from([1, 2, 3]),
    before=st.lists(choice, max_size=4),
    pairs=st.lists(st.tuples(choice, choice), min_size=1, max_size=4),
)
def test_two_writers_at_once_are_as_if_one_came_after_the_other_or_one_is_refused(
    version: int,
    before: list[tuple[str, int, str]],
    pairs: list[tuple[tuple[str, int, str], tuple[str, int, str]]],
) -> None:
    world, model = World.with_table(metadata(spec=BY_CITY, format_version=version)), Model()
    world.commit(SetProperties({"commit.manifest.min-count-to-merge": "3"}))
    number = 0
    for kind, pick, city in before:
        if kind == "row delta" and version == 1:
            continue
        number += 1
        one = step(world, kind, pick, city, number)
        world.commit(one.update)
        one.on(model)
    for pair in pairs:
        if version == 1 and any(kind == "row delta" for kind, _, _ in pair):
            continue
        number += 2
        mine, theirs = (step(world, *each, number + place) for place, each in enumerate(pair))
        transaction = world.begin(mine.update)
        world.commit(theirs.update)
        theirs.on(model)
        try:
            transaction.commit()
        except CommitConflictError:
            pass
        else:
            mine.on(model)
        check(world, model)
    check_files(world)


FAULTS = {
    "conflict": outcomes.conflict,
    "lost after success": outcomes.lost_answer_after_success,
    "success as conflict": outcomes.success_reported_as_conflict,
}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.tuples(choice, st.lists(st.sampled_from(sorted(FAULTS)), max_size=3)), min_size=1, max_size=6))
def test_whatever_the_metastore_answers_each_change_is_made_exactly_once(
    steps: list[tuple[tuple[str, int, str], list[str]]],
) -> None:
    world, model = World.with_table(metadata(spec=BY_CITY)), Model()
    for number, (chosen, faults) in enumerate(steps):
        one = step(world, *chosen, number)
        world.metastore.script.extend(FAULTS[name] for name in faults)
        world.commit(one.update)
        world.metastore.script.clear()
        one.on(model)
        check(world, model)
    check_files(world)
