"""Damaged files: a typed error or the true rows, never wrong rows and never another error."""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyroaring
import pytest

from hms_iceberg.arrow.deletes.puffin import decode_deletion_vector, encode_deletion_vector
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import CorruptDataFileError, IcebergError
from hms_iceberg.spec.data_types import DoubleType, ListType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from tests.support.arrow_tables import FileTable

# How many damages each of the tests below tries; set HMS_ICEBERG_FUZZ to try more.
MUTATIONS = int(os.environ.get("HMS_ICEBERG_FUZZ", "150"))
# Of so many damages of a Parquet file, one may do harm: pyarrow ends the process when it is shown a footer whose counts
# of levels contradict its schema, and footers have no checksum, so that a changed field id is a column not there.
ONE_IN = 1000
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "score", DoubleType()),
    NestedField(4, "tags", ListType(5, StringType(), False)),
)
MAPPING = (
    '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}, {"field-id": 3, "names": ["score"]},'
    ' {"field-id": 4, "names": ["tags"], "fields": [{"field-id": 5, "names": ["element"]}]}]'
)
ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "name": [None if n % 7 == 0 else f"name {n % 50}" for n in range(300)],
        "score": [n / 3 for n in range(300)],
        "tags": [[f"t{n % 3}", None] if n % 2 else None for n in range(300)],
    }
)


def mutations(data: bytes) -> list[bytes]:
    """Bytes changed, cut out, doubled or cut off, the same each time."""
    draw = random.Random(20240229)
    found = []
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        kind = draw.randrange(4)
        at = draw.randrange(len(data))
        if kind == 0:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at : at + draw.randrange(1, 9)] = b""
        elif kind == 2:
            changed[at:at] = draw.randbytes(draw.randrange(1, 9))
        else:
            changed = changed[:at]
        found.append(bytes(changed))
    return found


def rows_or_error(table: FileTable, batch_rows: int = 1000) -> pa.Table | str:
    try:
        return table.read(batch_rows=batch_rows)
    except IcebergError as error:
        return str(error)


def outcome(table: FileTable, expected: pa.Table, path: Path) -> str:
    """What a read of a damaged Parquet file comes to: refused, right, wrong or, in a process of its own, aborted."""
    if MUTATIONS <= ONE_IN:
        return _outcome(table, expected, path)
    outcomes = ("right", "refused", "wrong", "untyped")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        child = os.fork()
    if not child:
        try:
            code = outcomes.index(_outcome(table, expected, path))
        except BaseException:
            code = outcomes.index("untyped")
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    return "aborted" if os.WIFSIGNALED(status) else outcomes[os.WEXITSTATUS(status)]


def _outcome(table: FileTable, expected: pa.Table, path: Path) -> str:
    found = rows_or_error(table)
    if isinstance(found, str):
        return "refused" if str(path) in found else "untyped"
    return "right" if found.equals(expected.cast(found.schema)) else "wrong"


def check_outcomes(outcomes: Counter[str]) -> None:
    """Nearly all damages are refused or do no harm."""
    assert not outcomes["untyped"], outcomes
    assert outcomes["wrong"] + outcomes["aborted"] <= MUTATIONS // ONE_IN, outcomes


def written(path: Path, file_format: str) -> bytes:
    location = str(path)
    if file_format == "PARQUET":
        made = FileTable(path.parent / "source", SCHEMA, properties={"write.parquet.row-group-limit": "100"})
        (file,) = made.append(ROWS)
        return made.storage.read(file.file_path)
    if file_format == "ORC":
        orc.write_table(ROWS, location, compression="zlib")
    else:
        fields = [
            {"name": "id", "type": "long", "field-id": 1},
            {"name": "name", "type": ["null", "string"], "field-id": 2},
            {"name": "score", "type": ["null", "double"], "field-id": 3},
            {
                "name": "tags",
                "type": ["null", {"type": "array", "items": ["null", "string"], "element-id": 5}],
                "field-id": 4,
            },
        ]
        with open(location, "wb") as output:
            fastavro.writer(output, {"type": "record", "name": "r", "fields": fields}, ROWS.to_pylist(), "deflate")
    return path.read_bytes()


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
def test_a_damaged_data_file_gives_a_typed_error(tmp_path: Path, file_format: str) -> None:
    target = tmp_path / "data"
    data = written(target, file_format)
    table = FileTable(tmp_path / "t", SCHEMA, properties={"schema.name-mapping.default": MAPPING})
    table.files.append(DataFile(file_path=str(target), file_format=file_format, record_count=300, file_size_in_bytes=1))
    target.write_bytes(data)
    assert table.read().equals(ROWS.cast(table.read().schema))
    outcomes: Counter[str] = Counter()
    for number, mutation in enumerate(mutations(data)):
        target.write_bytes(mutation)
        if file_format == "PARQUET":
            outcomes[outcome(table, ROWS, target)] += 1
            continue
        # Unlike Parquet's pages, ORC and Avro files have no checksums to tell wrong rows. Small batches are streamed.
        found = rows_or_error(table, 1000 if number % 2 else 100)
        assert not isinstance(found, str) or str(target) in found
        outcomes["refused"] += isinstance(found, str)
    check_outcomes(outcomes)
    assert outcomes["refused"] > MUTATIONS // 3


def test_integers_that_arrow_cannot_decode_are_not_only_said_to_be_damaged() -> None:
    # What pyarrow 26 says of 32-bit integers of DuckDB's parquet_version v2 that lie far apart.
    refused = pytest.raises(CorruptDataFileError, match=r"f\.parquet: .*or its 32-bit integers .*Let Spark or DuckDB")
    with refused, decoding("f.parquet", "Parquet"):
        raise OSError("Unexpected end of stream: InitBlock EOF")


def test_a_damaged_deletion_vector_gives_a_typed_error() -> None:
    positions = [1, 5, *range(1000, 9000, 3), *range(1 << 33, (1 << 33) + 70_000)]
    blob = encode_deletion_vector(pyroaring.BitMap64(positions))
    assert decode_deletion_vector(blob, "the vector").tolist() == positions
    for mutation in mutations(blob):
        if mutation != blob:
            with pytest.raises(IcebergError, match="the vector"):
                decode_deletion_vector(mutation, "the vector")


def test_a_damaged_position_delete_file_gives_a_typed_error(tmp_path: Path) -> None:
    table = FileTable(tmp_path / "t", SCHEMA)
    (file,) = table.append(ROWS)
    pairs = [(file.file_path, position) for position in range(0, 300, 2)]
    deletes = table.position_deletes(pairs)
    pq.write_table(
        pq.read_table(deletes.file_path),
        deletes.file_path,
        write_page_checksum=True,
        store_schema=False,
    )
    table.delete(table.files, deletes)
    data = table.storage.read(deletes.file_path)
    expected = table.read()
    assert expected.num_rows == 150
    outcomes: Counter[str] = Counter()
    for mutation in mutations(data):
        Path(deletes.file_path).write_bytes(mutation)
        outcomes[outcome(table, expected, Path(deletes.file_path))] += 1
    check_outcomes(outcomes)
