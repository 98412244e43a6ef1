"""Upserts: how long 1,000,000 rows into 10,000,000 take, and how PyIceberg does at a smaller scale.

    python -m tests.benchmarks.upsert [--target 10000000] [--source 1000000] [--peer-target 100000] [--peer-source 2000]

Half of the source's rows have a match; of those half really differ. The tables are local files of the formats'
default settings; the metastore is in memory for us, and a Hive Metastore of this machine for PyIceberg.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spec.data_types import DoubleType, IntegerType, LongType, NestedField, StringType, TimestampType
from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.transaction import Created, Transaction
from tests.support.memory_metastore import InMemoryMetastore

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "customer", IntegerType()),
    NestedField(3, "status", StringType()),
    NestedField(4, "amount", DoubleType()),
    NestedField(5, "updated", TimestampType()),
    NestedField(6, "note", StringType()),
    identifier_field_ids=[1],
)
NAME = ("bench", "orders")


def rows(ids: Any, version: int) -> pa.Table:
    """Orders with these ids, in their first or second version."""
    count = len(ids)
    statuses = pa.array(["open", "paid", "shipped", "closed"])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array(ids % 9973, pa.int32()),
            "status": statuses.take(pa.array((ids + version) % 4)),
            "amount": pa.array(ids * 1.25, pa.float64()),
            "updated": pa.array(ids * 1_000_003 + version, pa.timestamp("us")),
            "note": pa.array([f"note {each % 50_000}" for each in ids.tolist()] if count else [], pa.string()),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), False),
                ("customer", pa.int32()),
                ("status", pa.string()),
                ("amount", pa.float64()),
                ("updated", pa.timestamp("us")),
                ("note", pa.string()),
            ]
        ),
    )


def source_of(target: int, source: int) -> tuple[pa.Table, int, int]:
    """Rows to upsert into ids 0 to `target`, in random order; and how many must be updated and inserted."""
    random = np.random.default_rng(7)
    half, quarter = source // 2, source // 4
    known = random.choice(target, half, replace=False)
    new = np.arange(target, target + source - half)
    parts = [rows(known[:quarter], 1), rows(known[quarter:], 0), rows(new, 0)]
    table = pa.concat_tables(parts)
    return table.take(pa.array(random.permutation(table.num_rows))), quarter, source - half


def our_table(folder: Path, properties: dict[str, str]) -> Table:
    """An empty table of ours."""
    metastore, storage = InMemoryMetastore(), ArrowStorage()
    metastore.create_namespace(NAME[0], {})
    metadata = new_table_metadata(SCHEMA, location=str(folder), properties=properties, format_version=2)
    return Table(NAME, Transaction(NAME, Created(metadata), metastore, storage).commit(), metastore, storage)


def fill(append: Callable[[pa.Table], Any], target: int) -> None:
    """Appends ids 0 to `target` in ten files or so."""
    step = max(1, target // 10)
    for start in range(0, target, step):
        append(rows(np.arange(start, min(start + step, target)), 0))


def timed(what: str, run: Callable[[], Any]) -> Any:
    """Runs something and says how long it took."""
    started = time.perf_counter()
    result = run()
    sys.stdout.write(f"{what}: {time.perf_counter() - started:.2f} s\n")
    sys.stdout.flush()
    return result


def ours(target: int, source: int, folder: Path, mode: str) -> None:
    """Measures this project."""
    table = our_table(folder / f"ours_{target}_{mode}", {"write.merge.mode": mode})
    fill(table.append, target)
    data, updated, inserted = source_of(target, source)
    result = timed(f"hms_iceberg, {mode}: {source:,} rows into {target:,}", lambda: table.upsert(data))
    assert (result.rows_updated, result.rows_inserted) == (updated, inserted), result
    assert table.scan().count() == target + inserted
    again = timed(f"hms_iceberg, {mode}: the same rows again, nothing to change", lambda: table.upsert(data))
    assert (again.rows_updated, again.rows_inserted) == (0, 0), again


def peer(target: int, source: int) -> None:
    """Measures PyIceberg."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.schema import Schema as PeerSchema
    from pyiceberg.types import (
        DoubleType,
        IntegerType,
        LongType,
        NestedField,
        StringType,
        TimestampType,
    )

    schema = PeerSchema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "customer", IntegerType()),
        NestedField(3, "status", StringType()),
        NestedField(4, "amount", DoubleType()),
        NestedField(5, "updated", TimestampType()),
        NestedField(6, "note", StringType()),
        identifier_field_ids=[1],
    )
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=str(metastore.warehouse))
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.orders", schema)
        fill(table.append, target)
        data, updated, inserted = source_of(target, source)
        result = timed(f"PyIceberg: {source:,} rows into {target:,}", lambda: table.upsert(data))
        assert (result.rows_updated, result.rows_inserted) == (updated, inserted), result


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=int, default=10_000_000)
    parser.add_argument("--source", type=int, default=1_000_000)
    parser.add_argument("--peer-target", type=int, default=100_000, help="0 leaves PyIceberg out")
    parser.add_argument("--peer-source", type=int, default=2_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="upsert-") as name:
        folder = Path(name)
        for mode in ("copy-on-write", "merge-on-read"):
            ours(arguments.target, arguments.source, folder, mode)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(f"peak memory: {peak:,.0f} MB\n")
        if arguments.peer_target:
            for mode in ("copy-on-write", "merge-on-read"):
                ours(arguments.peer_target, arguments.peer_source, folder, mode)
            peer(arguments.peer_target, arguments.peer_source)


if __name__ == "__main__":
    main()
