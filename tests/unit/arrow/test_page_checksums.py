"""Damage is found in pages of every kind, by the checksums that their writer left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.formats import page_checksums
from hms_iceberg.arrow.formats.page_checksums import is_intact

KINDS = {
    "plain": {"use_dictionary": False},
    "dictionary": {"use_dictionary": True},
    "plain of version 2": {"use_dictionary": False, "data_page_version": "2.0"},
    "dictionary of version 2": {"use_dictionary": True, "data_page_version": "2.0"},
    "statistics in headers": {"use_dictionary": False, "write_page_index": False},
    "statistics in headers of version 2": {"write_page_index": False, "data_page_version": "2.0"},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("general", [False, True], ids=["usual", "general"])
def test_a_flipped_bit_in_any_page_is_found(
    tmp_path: Path, options: dict[str, Any], general: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if general:
        monkeypatch.setattr(page_checksums, "_USUAL_HEADER", page_checksums.re.compile(b"(?!)"))
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": pa.array(range(3000), pa.int64())})
    pq.write_table(
        rows, path, compression="none", write_page_checksum=True, data_page_size=2000, write_batch_size=100, **options
    )
    chunk = pq.read_metadata(path).row_group(0).column(0)
    found = bytearray(path.read_bytes())
    assert holds(chunk, found)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    end = start + chunk.total_compressed_size
    pages = 0
    while start < end:
        header, size, checksum = page_checksums._header(memoryview(found), start)
        assert checksum is not None and size > 100
        start = header + size
        pages += 1
        for at in (header, header + size // 2, start - 1):
            found[at] ^= 4
            assert not holds(chunk, found)
            found[at] ^= 4
    assert start == end and pages > 2


def holds(chunk: Any, data: bytearray) -> bool:
    return is_intact(memoryview(bytes(data)), chunk)


@pytest.mark.parametrize("usual", [False, True])
def test_pages_without_checksums_are_taken_as_they_are(tmp_path: Path, usual: bool) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), path, write_page_checksum=False, write_page_index=usual)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 4
    assert holds(chunk, data)
