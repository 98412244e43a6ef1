"""What encryption costs: appends, scans and planning of an encrypted table beside one that is not.

    python -m tests.benchmarks.encryption [--rows 1000000] [--files 300] [--repeats 5]

Both tables are in folders of this machine; each number is the median of the repeats, taken in turns. Factors are of
time, with those of the processor behind them.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from click import echo

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.table import Table

Times = tuple[float, float]


def rows(count: int) -> pa.Table:
    """Numbers, texts and times, as of a table of events."""
    random = np.random.default_rng(7)
    columns = {
        "id": np.arange(count),
        "kind": random.choice(["view", "click", "buy", "leave"], count),
        "price": random.normal(10, 3, count),
        "who": np.char.add("user ", random.integers(0, count // 10, count).astype(str)),
        "at": (random.integers(0, 10**15, count)).astype("datetime64[us]"),
        **{f"n{number}": random.integers(0, 10**6, count) for number in range(5)},
    }
    return pa.table(columns)


def timed(work: Callable[[], object]) -> Times:
    """Seconds, and seconds of the processor."""
    began, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - processor


def compared(name: str, work: Callable[[Table], object], plain: Table, encrypted: Table, repeats: int) -> None:
    """Times both in turns, and tells."""
    found: dict[str, list[Times]] = {"plain": [], "encrypted": []}
    for repeat in range(repeats + 1):
        for kind, table in (("plain", plain), ("encrypted", encrypted)):
            cache_of(None).clear()
            times = timed(lambda table=table: work(table))  # type: ignore[misc]
            if repeat:  # the first warms up
                found[kind].append(times)
    before, after = ([statistics.median(column) for column in zip(*found[kind], strict=True)] for kind in found)
    factors = [second / first for first, second in zip(before, after, strict=True)]
    echo(f"{name:28} {before[0]:8.3f} s {after[0]:8.3f} s   x{factors[0]:.2f} (processor x{factors[1]:.2f})")


def pair(catalog: Catalog, name: str, data: pa.Table) -> tuple[Table, Table]:
    """Two empty tables, the second encrypted."""
    keys = ({}, {"encryption.key-id": "one", "encryption.data-key-length": "32"})
    plain, encrypted = (
        catalog.create_table(f"db.{name}_{len(key)}", data.schema, properties={"format-version": "3", **key})
        for key in keys
    )
    return plain, encrypted


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys.json"
        keys.write_text(json.dumps({"one": base64.b64encode(bytes(32)).decode()}))
        keys.chmod(0o600)
        settings = {"encryption.kms-type": "keystore", "kms.keystore.path": str(keys)}
        catalog = load_catalog("b", type="hadoop", warehouse=f"{folder}/w", **settings)
        catalog.create_namespace("db")
        data = rows(asked.rows)
        echo(f"{'':28} {'plain':>10} {'encrypted':>10}")
        plain, encrypted = pair(catalog, "large", data)
        compared(f"append {asked.rows:,} rows", lambda table: table.overwrite(data), plain, encrypted, asked.repeats)
        compared("scan all columns", lambda table: table.scan().to_arrow(), plain, encrypted, asked.repeats)
        half = f"id < {asked.rows // 20}"
        compared("scan one row of twenty", lambda table: table.scan(half).to_arrow(), plain, encrypted, asked.repeats)
        few = data.slice(0, 10)
        compared("append 10 rows", lambda table: table.append(few), plain, encrypted, 4 * asked.repeats)
        plain, encrypted = pair(catalog, "many", few)
        for table in (plain, encrypted):
            with table.transaction() as transaction:
                for _ in range(asked.files):
                    transaction.append(few)
            table.maintenance.rewrite_manifests()
        compared(
            f"plan {asked.files:,} files",
            lambda table: list(table.scan().plan_files()),
            plain,
            encrypted,
            asked.repeats,
        )
        compared(f"scan {asked.files:,} files", lambda table: table.scan().to_arrow(), plain, encrypted, 3)


if __name__ == "__main__":
    sys.exit(main())
