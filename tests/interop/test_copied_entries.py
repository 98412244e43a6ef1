"""Manifests whose entries were copied as bytes say to PyIceberg what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list

from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import World, data_file, metadata

pytestmark = pytest.mark.interop
METRICS = ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_what_was_written_of_files_that_stay_and_of_those_that_went(
    version: int, tmp_path: Path
) -> None:
    world = World.with_table(metadata(format_version=version))
    files = [
        data_file(
            number,
            number + 9,
            **{name: {column: 10**column + number for column in range(1, 13)} for name in METRICS[:3]},
            **{name: {column: bytes([number]) * column for column in range(1, 13)} for name in METRICS[3:]},
        )
        for number in range(240)
    ]
    world.append(*files[:120])
    world.append(*files[120:200])
    world.commit(SetProperties({"commit.manifest.min-count-to-merge": "2"}))
    world.commit(Overwrite(tuple(files[200:]), tuple(files[20:160:20])))
    world.commit(DeleteFiles((files[0], files[239])))
    for location, data in world.storage.files.items():
        copy = tmp_path / location.partition("://")[2]
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)

    class Copies(PyArrowFileIO):
        def new_input(self, location: str) -> InputFile:
            return super().new_input(str(tmp_path / location.partition("://")[2]))

    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    (manifest,) = read_manifest_list(Copies().new_input(str(snapshot.manifest_list)))
    entries = manifest.fetch_manifest_entry(Copies(), discard_deleted=False)
    found = {entry.data_file.file_path: entry for entry in entries}
    left = [file for file in files if file not in files[20:160:20]]
    assert len(entries) == len(found) == len(left) == 233
    assert (manifest.existing_files_count, manifest.deleted_files_count) == (231, 2)
    for number, file in enumerate(left):
        entry = found[file.file_path]
        assert entry.status == (2 if number in (0, 232) else 0)
        assert entry.data_file.record_count == file.record_count
        for name in METRICS:
            assert getattr(entry.data_file, name) == getattr(file, name)
        if version > 1:
            added = 1 if number < 115 else 2 if number < 193 else 3
            assert (entry.sequence_number, entry.file_sequence_number) == (added, added)
