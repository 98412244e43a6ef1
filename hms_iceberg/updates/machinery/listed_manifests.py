"""The manifests of many snapshots, each once.

A table may have thousands of snapshots whose manifest lists are much the same: they are decoded to columns, many at a
time, and only what was not seen before becomes an object.
"""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from hms_iceberg.encryption.encrypted_tables import list_bytes
from hms_iceberg.errors import CorruptFileError, CorruptManifestError, StorageError
from hms_iceberg.lazy import pl
from hms_iceberg.spec.manifests.avro_container import (
    AvroContainer,
    encode_long,
    read_container,
    read_contents,
    write_header,
)
from hms_iceberg.spec.manifests.manifest_layout import manifest_list_layout
from hms_iceberg.spec.manifests.manifest_list_avro import check_listed, decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import FileReader

T = TypeVar("T")
_READERS = 8
# Of a batch: as many files, and no more than so many bytes, decoded, but for the last file.
_AT_ONCE = 256
_BYTES_AT_ONCE = 32 * 1024 * 1024
# Compressed files have at least so many bytes when they are decoded, and so does an entry.
_EXPANDED = 4
_ENTRY_BYTES = 512

OnUnreadable = Callable[[Exception], None] | None
"""Gets the error of a file that cannot be read, which is passed over; None has it raised."""


def in_batches(
    items: Iterable[T], content: Callable[[T], bytes], entries: Callable[[T], int] = lambda _: 0
) -> Iterator[list[tuple[T, bytes | Exception]]]:
    """Items with the content of their files, or the error of reading it, as many at a time as are small together."""
    left = iter(items)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        reading = deque((each, pool.submit(_contents, content, each)) for each in islice(left, _READERS))
        batch: list[tuple[T, bytes | Exception]] = []
        size = 0
        while reading:
            item, data = reading.popleft()
            batch.append((item, read := data.result()))
            size += 0 if isinstance(read, Exception) else max(_EXPANDED * len(read), _ENTRY_BYTES * entries(item))
            reading.extend((each, pool.submit(_contents, content, each)) for each in islice(left, 1))
            if not reading or len(batch) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
                yield batch
                batch, size = [], 0


def _contents(content: Callable[[T], bytes], item: T) -> bytes | Exception:
    try:
        return content(item)
    except (StorageError, CorruptFileError) as error:
        return error


def tell(error: Exception, on_unreadable: OnUnreadable) -> None:
    """Hands an error on, or raises it."""
    if on_unreadable is None:
        raise error
    on_unreadable(error)


# What says how to read a manifest; what partitions it has does not matter here.
_COLUMNS = (
    "manifest_path",
    "manifest_length",
    "partition_spec_id",
    "content",
    "sequence_number",
    "min_sequence_number",
    "added_snapshot_id",
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
    "key_metadata",
    "first_row_id",
)
_Read = tuple[Snapshot, bytes]


def manifests_of_all(
    snapshots: Collection[Snapshot], reader: FileReader, on_unreadable: OnUnreadable = None
) -> dict[str, ManifestFile]:
    """The manifests of snapshots by their location, without summaries of partitions; without `on_unreadable`, errors
    are raised."""
    found: dict[str, ManifestFile] = {}
    listed = [snapshot for snapshot in snapshots if snapshot.manifest_list is not None]
    for snapshot in snapshots:
        if snapshot.manifest_list is None:
            try:
                found.update((each.manifest_path, each) for each in manifest_list_of(snapshot, reader))
            except (StorageError, CorruptFileError) as error:
                tell(error, on_unreadable)
    for batch in in_batches(listed, lambda each: list_bytes(each, reader)):
        alike: dict[bytes, list[tuple[_Read, AvroContainer]]] = {}
        for snapshot, data in batch:
            try:
                if isinstance(data, Exception):
                    raise data
                container = read_container(data, f"manifest list {snapshot.manifest_list}")
            except (StorageError, CorruptFileError) as error:
                tell(_of_manifest_list(error), on_unreadable)
            else:
                key = container.codec.encode() + container.schema_json
                alike.setdefault(key, []).append(((snapshot, data), container))
        for group in alike.values():
            _decode(group, found, on_unreadable)
    return found


def _of_manifest_list(error: Exception) -> Exception:
    if isinstance(error, CorruptFileError) and not isinstance(error, CorruptManifestError):
        return CorruptManifestError(str(error))
    return error


def _decode(
    group: Sequence[tuple[_Read, AvroContainer]], found: dict[str, ManifestFile], on_unreadable: OnUnreadable
) -> None:
    """Adds the manifests of lists of one layout."""
    manifests: Iterable[ManifestFile] | None = None
    if all(container.text("snapshot-id") in (None, str(read[0].snapshot_id)) for read, container in group):
        manifests = _columnar([container for _, container in group], found)
    if manifests is None:  # slower, but it reads more and says what is wrong
        for (snapshot, data), _ in group:
            try:
                listed = decode_manifest_list(data, snapshot.manifest_list or "", snapshot.snapshot_id)
            except (StorageError, CorruptFileError) as error:
                tell(error, on_unreadable)
            else:
                found.update((each.manifest_path, each) for each in listed if each.manifest_path not in found)
    else:
        found.update((each.manifest_path, each) for each in manifests)


def _columnar(containers: Sequence[AvroContainer], known: dict[str, ManifestFile]) -> list[ManifestFile] | None:
    """The manifests that are not known; None if a list is unusual or damaged."""
    what = "a manifest list"
    try:
        header, names = _plain_schema(containers[0].schema_json)
        pieces: list[bytes] = []
        rows = 0
        for container in containers:
            for block, raw in read_contents(container, what):
                rows += block.records
                pieces.append(raw)
        sync = containers[0].sync
        head = [write_header(header, "null", {}, sync), encode_long(rows), encode_long(sum(map(len, pieces)))]
        frame = pl.read_avro(io.BytesIO(b"".join([*head, *pieces, sync])), columns=list(names))
    except (CorruptFileError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return None
    if frame.height != rows:
        return None
    frame = frame.rename(names).unique("manifest_path", keep="first", maintain_order=True)
    new = frame.filter(~frame["manifest_path"].is_in(list(known)))
    manifests = list(_manifest_files(new))
    return None if any(check_listed(each) is not None for each in manifests) else manifests


def _manifest_files(frame: pl.DataFrame) -> Iterator[ManifestFile]:
    for row in frame.iter_rows(named=True):
        content = ManifestContent(row.pop("content", None) or 0)
        sequence_number, smallest = row.pop("sequence_number", None), row.pop("min_sequence_number", None)
        yield ManifestFile(
            content=content, sequence_number=sequence_number or 0, min_sequence_number=smallest or 0, **row
        )


@lru_cache(maxsize=64)
def _plain_schema(schema_json: bytes) -> tuple[bytes, dict[str, str]]:
    """The schema without all that polars does not know, and the names of columns in the file with ours."""
    fields = manifest_list_layout(schema_json).fields
    plain: Any = _plain(json.loads(schema_json))
    names = {fields[name]: name for name in _COLUMNS if name in fields}
    return json.dumps(plain).encode("utf-8"), names


def _plain(avro_type: Any) -> Any:
    if isinstance(avro_type, list):
        return [_plain(branch) for branch in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    if avro_type["type"] == "record":
        fields = [{"name": field["name"], "type": _plain(field["type"])} for field in avro_type["fields"]]
        return {"type": "record", "name": avro_type["name"], "fields": fields}
    kept = {key: value for key, value in avro_type.items() if key in ("type", "name", "size")}
    return {**kept, "items": _plain(avro_type["items"])} if "items" in avro_type else kept
