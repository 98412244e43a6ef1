"""Checksums of the pages of Parquet files, for readers that do not look at them.

Source: Apache Parquet, "parquet.thrift" (``PageHeader``), "Checksumming".
"""

from __future__ import annotations

import re

import pyarrow.parquet as pq
from isal.isal_zlib import crc32  # zlib's takes five times as long, and three quarters longer to read random integers

from hms_iceberg.arrow.metrics.compact_thrift import CompactThrift, integer_of

_SIZE, _CHECKSUM = 3, 4
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
# What most headers look like: kind, sizes and checksum, and then of a data page, of a dictionary, or of a data page of
# the second version how many values it has in which encodings, without statistics.
_USUAL_HEADER = re.compile(
    rb"\x15N\x15N\x15(N)\x15(N)"
    rb"(?:\x1c(?:\x15N){4}|\x3c(?:\x15N){2}[\x11\x12]?|\x4c(?:\x15N){6}[\x11\x12]?)\0\0".replace(b"N", _NUMBER),
    re.DOTALL,
)


def is_intact(file: memoryview, chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether the pages of a column in a row group are what their writer's checksums say, as far as it left some.
    `file` is all of the file. False also if the pages cannot be told apart."""
    first = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:  # some writers say 0 if there is none
        first = min(first, chunk.dictionary_page_offset)
    pages = file[first : first + chunk.total_compressed_size]
    at = 0
    try:
        while at < len(pages):
            start, size, checksum = _header(pages, at)
            if checksum is None:
                return True
            at = start + size
            if not start < at <= len(pages) and size:
                return False
            if crc32(pages[start:at]) != checksum & 0xFFFFFFFF:
                return False
    except (IndexError, ValueError):
        return False
    return True


def _header(pages: memoryview, at: int) -> tuple[int, int, int | None]:
    """Where a page's bytes begin behind its header, how many they are, and their checksum."""
    usual = _USUAL_HEADER.match(pages, at)
    if usual is not None:
        return usual.end(), integer_of(usual[1]), integer_of(usual[2])
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
