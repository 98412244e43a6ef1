"""Files made to exhaust memory or to end the process: a typed error, within bounded memory."""

from __future__ import annotations

import os
import resource
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyroaring
import pytest

from hms_iceberg.arrow.deletes.puffin import encode_deletion_vector, read_deletion_vector
from hms_iceberg.errors import CorruptFileError, StorageError
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.spec.manifests.avro_container import encode_long, read_blocks, read_container
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from tests.support.row_tables import create

ROWS = pa.table({"id": [1, 2], "amount": pa.array([1, 2], pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = create(tmp_path)
    made.append(ROWS)
    return made


def manifest_list(table: Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    return Path(snapshot.manifest_list)


def manifest(table: Table) -> Path:
    (only,) = manifest_list_of(table.current_snapshot(), table.storage)
    return Path(only.manifest_path)


@lru_cache(maxsize=1)
def gigabyte() -> bytes:
    """A gigabyte of zeros, deflated to one megabyte."""
    deflater = zlib.compressobj(wbits=-15)
    megabyte = deflater.compress(bytes(1 << 20)) + deflater.flush(zlib.Z_FULL_FLUSH)
    return megabyte * (1 << 10) + deflater.flush()


def with_block(path: Path, records: int, packed: bytes | None = None) -> None:
    """Puts another number of records into the head of a file's only block, and other bytes into the block."""
    container = read_container(path.read_bytes(), "")
    (block,) = read_blocks(container, "")
    packed = packed or container.data[block.start : block.end]
    head = container.data[: container.body_offset]
    path.write_bytes(b"".join([head, encode_long(records), encode_long(len(packed)), packed, container.sync]))


def grown(attempt: Callable[[], object]) -> int:
    """By how many MiB the process became larger than ever before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    attempt()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


def plan(table: Table) -> None:
    cache_of(None).clear()
    list(table.scan().plan_files())


def entries(table: Table) -> None:
    for each in manifest_list_of(table.current_snapshot(), table.storage):
        entries_of(each, table.storage)


@pytest.mark.parametrize("file", [manifest_list, manifest])
@pytest.mark.parametrize("read", [plan, entries])
def test_a_block_that_inflates_to_a_gigabyte_is_refused_early(
    table: Table, file: Callable[[Table], Path], read: Callable[[Table], None]
) -> None:
    path = file(table)
    with_block(path, 1, gigabyte())
    assert path.stat().st_size < 1 << 21

    def refused() -> None:
        with pytest.raises(CorruptFileError, match="holds more than"):
            read(table)

    assert grown(refused) < 400


@pytest.mark.parametrize("file", [manifest_list, manifest])
@pytest.mark.parametrize("read", [plan, entries])
@pytest.mark.parametrize("records", [1 << 20, 1 << 40, (1 << 62) - 1])
def test_a_block_of_more_records_than_bytes_is_refused(
    table: Table, file: Callable[[Table], Path], read: Callable[[Table], None], records: int
) -> None:
    with_block(file(table), records)
    with pytest.raises(CorruptFileError, match=f"said to hold {records:,} records"):
        read(table)


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "folder"])
def test_what_is_no_file_is_not_read(table: Table, tmp_path: Path, target: str) -> None:
    place = Path(target) if target.startswith("/") else tmp_path / target
    if target == "pipe":
        os.mkfifo(place)
    elif target == "folder":
        place.mkdir()
    for path in (manifest(table), manifest_list(table)):
        path.unlink()
        path.symlink_to(place)
        with pytest.raises(StorageError, match=r"it is a (device or pipe|folder), not a file"):
            plan(table)
    for read in (table.storage.read, table.storage.open_input, lambda name: read_version(name, table.storage)):
        with pytest.raises(StorageError, match="not a file"):
            read(str(place))


def test_a_file_larger_than_metadata_can_be_is_not_read(table: Table) -> None:
    path = manifest_list(table)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError, match="1,099,511,627,776 bytes"):
        plan(table)


def test_a_deletion_vector_of_more_positions_than_its_manifest_says_is_not_unpacked(tmp_path: Path) -> None:
    table = create(tmp_path, 3, "merge-on-read")
    table.append(ROWS)
    table.delete("id = 1")
    (task,) = table.scan().plan_files()
    (vector,) = task.delete_files
    blob = encode_deletion_vector(pyroaring.BitMap64(range(1 << 30)))
    assert len(blob) < 1 << 20
    Path(vector.file_path).write_bytes(blob)
    larger = replace(vector, content_offset=0, content_size_in_bytes=len(blob))

    def refused() -> None:
        with pytest.raises(CorruptFileError, match="1,073,741,824 positions, the manifest says 1"):
            read_deletion_vector(table.storage, larger)

    assert grown(refused) < 100


def test_a_block_of_a_data_file_that_inflates_to_a_gigabyte_is_refused_early(tmp_path: Path) -> None:
    table = create(tmp_path, **{"write.format.default": "avro"})
    table.append(ROWS)
    (task,) = table.scan().plan_files()
    with_block(Path(task.file.file_path), 2, gigabyte())

    def refused() -> None:
        with pytest.raises(CorruptFileError, match="holds more than"):
            table.scan().to_arrow()

    assert grown(refused) < 400
