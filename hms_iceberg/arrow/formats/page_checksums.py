"""Checksums of the pages of Parquet files, for readers that do not look at them.

Source: Apache Parquet, "parquet.thrift" (``PageHeader``), "Checksumming".
"""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow.parquet as pq

from hms_iceberg.arrow.metrics.compact_thrift import CompactThrift

_SIZE, _CHECKSUM = 3, 4


def is_intact(file: Any, chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether the pages of a column in a row group are what their writer's checksums say, as far as it left some.

    `file` has `read_at`. False also if the pages cannot be told apart.
    """
    first = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:  # some writers say 0 if there is none
        first = min(first, chunk.dictionary_page_offset)
    pages = memoryview(file.read_at(chunk.total_compressed_size, first))
    at = 0
    try:
        while at < len(pages):
            start, size, checksum = _header(pages, at)
            if checksum is None:
                return True
            at = start + size
            if not start < at <= len(pages) and size:
                return False
            if zlib.crc32(pages[start:at]) != checksum & 0xFFFFFFFF:
                return False
    except (IndexError, ValueError):
        return False
    return True


def _header(pages: memoryview, at: int) -> tuple[int, int, int | None]:
    """Where a page's bytes begin behind its header, how many they are, and their checksum."""
    size, checksum = -1, None
    header = CompactThrift(pages)
    header.at = at
    for number, kind in header.fields():
        if number == _SIZE:
            size = header.integer()
        elif number == _CHECKSUM:
            checksum = header.integer()
        else:
            header.skip(kind)
    if size < 0:
        raise ValueError("a page without a size")
    return header.at, size, checksum
