"""Small blobs of Puffin that hold very much are refused before it is made."""

from __future__ import annotations

import struct

import cramjam
import pyroaring
import pytest

from hms_iceberg.arrow.deletes.puffin import blob_bytes, decode_deletion_vector, encode_deletion_vector, parse_footer
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import ConfigurationError, CorruptDataFileError
from hms_iceberg.spec.read_limit import READ_LIMIT, ReadLimit

MEBIBYTE = 1 << 20
MAGIC = b"PFA1"


def test_a_small_vector_of_very_many_positions_is_refused() -> None:
    positions = pyroaring.BitMap64(range(0))
    positions.add_range(0, 2**24)
    positions.run_optimize()
    blob = encode_deletion_vector(positions)
    assert len(blob) < 100_000
    with pytest.raises(CorruptDataFileError, match=READ_LIMIT):
        decode_deletion_vector(blob, "the vector", 2**24, ReadLimit(64 * MEBIBYTE))
    assert len(decode_deletion_vector(blob, "the vector", 2**24)) == 2**24


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_blob_is_decompressed_as_far_as_its_size_allows(codec: str) -> None:
    compress = (cramjam.zstd if codec == "zstd" else cramjam.lz4).compress
    bomb, plain = bytes(compress(bytes(128 * MEBIBYTE))), bytes(compress(b"sketch" * 1000))
    for stored, is_read in ((bomb, False), (plain, True)):
        data = MAGIC + stored
        told = {"type": "t", "offset": 4, "length": len(stored), "compression-codec": codec}
        if is_read:
            assert blob_bytes(data, told, "s3://b/x.puffin") == b"sketch" * 1000
        else:
            with pytest.raises(CorruptDataFileError, match=r"s3://b/x\.puffin"):
                blob_bytes(data, told, "s3://b/x.puffin")


def test_a_footer_is_decompressed_as_far_as_its_size_allows() -> None:
    footer = bytes(cramjam.lz4.compress(b" " * (128 * MEBIBYTE) + b"{}"))
    tail = struct.pack("<i", len(footer)) + struct.pack("<I", 1) + MAGIC
    with pytest.raises(CorruptDataFileError, match=r"x\.puffin"):
        parse_footer(MAGIC + MAGIC + footer + tail, "s3://b/x.puffin")


def test_a_catalog_sets_the_limit_of_its_storage() -> None:
    assert ArrowStorage({READ_LIMIT: "1000"}).read_limit == ReadLimit(1000)
    with pytest.raises(ConfigurationError, match=READ_LIMIT):
        ArrowStorage({READ_LIMIT: "much"})
