"""Frames of pandas are written with their named indexes as columns, and without those that only number the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.catalog.loading import load_catalog
from hms_iceberg.errors import SchemaMismatchError, TypeMismatchError

_FRAME = pd.DataFrame({"i": [1, 2, 3], "k": [7, 9, 8]})
_BOTH = [{"i": 1, "k": 7}, {"i": 2, "k": 9}, {"i": 3, "k": 8}]
_SHIFTED = _FRAME.set_index(pd.Index([3, 4, 5], name="k"))
FRAMES: dict[str, tuple[pd.DataFrame, list[dict[str, Any]]]] = {
    "plain": (_FRAME, _BOTH),
    "filtered": (_FRAME[_FRAME.i != 2], [_BOTH[0], _BOTH[2]]),
    "sorted": (_FRAME.sort_values("i", ascending=False), _BOTH[::-1]),
    "concatenated": (pd.concat([_FRAME, _FRAME]), _BOTH * 2),
    "of no rows": (_FRAME.iloc[:0], []),
    "with a text index": (_FRAME.set_index(pd.Index(["a", "b", "c"])), _BOTH),
    "with an index of times": (_FRAME.set_index(pd.date_range("2020", periods=3)), _BOTH),
    "with a named index": (_FRAME.set_index("k"), _BOTH),
    "with a named range": (
        _FRAME[["i"]].set_index(pd.RangeIndex(7, 10, name="k")),
        [{"i": place + 1, "k": place + 7} for place in range(3)],
    ),
    "with two named levels": (_FRAME.set_index(["i", "k"]), _BOTH),
    "with one named level of two": (
        _FRAME[["i"]].set_index(pd.MultiIndex.from_arrays([["a", "b", "c"], [7, 9, 8]], names=[None, "k"])),
        _BOTH,
    ),
    "grouped": (_FRAME.groupby("k", sort=False).sum(), _BOTH),
    "with a column that is its index too": (_FRAME.set_index("k", drop=False), _BOTH),
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("folder", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    return catalog


@pytest.mark.parametrize("case", FRAMES)
def test_a_frame_is_written_with_its_named_index_and_without_others(catalog: Catalog, case: str) -> None:
    frame, rows = FRAMES[case]
    schema = pa.schema([("i", pa.int64()), ("k", pa.int64())])
    table = catalog.create_table("n.t", schema)
    table.append(frame)
    assert table.scan().to_arrow().to_pylist() == rows
    table.overwrite(pa.Table.from_pandas(frame, preserve_index=True))
    assert table.scan().to_arrow().to_pylist() == rows
    if len(rows) == 3:
        assert table.upsert(frame, ["k"]).rows_inserted == 0
        assert catalog.create_table("n.u", schema).upsert(frame, ["k"]).rows_inserted == 3


@pytest.mark.parametrize("case", FRAMES)
def test_a_table_is_created_with_the_columns_of_a_frame(catalog: Catalog, case: str) -> None:
    frame, rows = FRAMES[case]
    for number, given in enumerate((frame, pa.Schema.from_pandas(frame, preserve_index=True))):
        table = catalog.create_table(f"n.t{number}", given)
        assert sorted(field.name for field in table.schema().fields) == ["i", "k"]
        table.append(frame)
        assert sorted(table.scan().to_arrow().to_pylist(), key=str) == sorted(
            ({name: row[name] for name in table.schema().column_names} for row in rows), key=str
        )


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (_SHIFTED, SchemaMismatchError, "both a column and an index 'k'"),
        (_FRAME.set_index(pd.Index([1, 2, 3], name="x")), SchemaMismatchError, "'x'"),
        (pd.DataFrame([[1, 2]], columns=["i", "i"]), SchemaMismatchError, "[Dd]uplicate"),
        (pd.DataFrame({"i": [1, "a"], "k": [1, 2]}), TypeMismatchError, "column i"),
        (pd.DataFrame({"i": [object()], "k": [1]}), TypeMismatchError, "column i"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(
    catalog: Catalog, frame: pd.DataFrame, error: type[Exception], message: str
) -> None:
    table = catalog.create_table("n.t", pa.schema([("i", pa.int64()), ("k", pa.int64())]))
    with pytest.raises(error, match=message):
        table.append(frame)
    assert table.refresh().current_snapshot() is None
