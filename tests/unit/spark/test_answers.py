"""Answers to the JVM, read back by nothing of ours."""

from __future__ import annotations

import struct
from itertools import pairwise

import polars as pl
import pytest

from hms_iceberg.spark.answers import AnswerWriter

TEXTS = ["", "a", "ä\U0001f600", "x" * 300, "s3://b/data/\0.parquet", ""]
PLAIN = pl.Series(TEXTS * 50)


def read_texts(answer: bytes, count: int) -> list[str]:
    """The texts of an answer whose header is empty."""
    assert answer[:6] == struct.pack("<I", 2) + b"{}"
    offsets = struct.unpack_from(f"<{count + 1}q", answer, 8)
    begin = 8 + 8 * (count + 1)
    assert len(answer) == begin + offsets[-1]
    return [answer[begin + low : begin + high].decode() for low, high in pairwise(offsets)]


@pytest.mark.parametrize(
    "texts",
    [
        PLAIN,
        PLAIN[7:40],
        PLAIN[:0],
        pl.Series([], dtype=pl.String),
        pl.concat([PLAIN[3:9], PLAIN[1:2], PLAIN[:0], PLAIN[5:]], rechunk=False),
        pl.concat([PLAIN[3:9], PLAIN[5:]], rechunk=False)[4:8],
        PLAIN.gather([5, 3, 3, 0]),
        PLAIN.filter(PLAIN.str.len_bytes() > 5),
    ],
    ids=["whole", "a slice", "an empty slice", "none", "chunks", "a slice of chunks", "gathered", "filtered"],
)
def test_texts_are_where_their_offsets_say(texts: pl.Series) -> None:
    assert read_texts(AnswerWriter({}).texts(texts).done(), len(texts)) == texts.to_list()
