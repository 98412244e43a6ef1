"""Writing rows from Python beside the libraries themselves: append, append to a table partitioned by day, and a delete
of 1% of the rows, which writes their files anew.

    python -m tests.benchmarks.writing [--rows 1000000] [--repeats 3] [--formats parquet orc avro] [--peer]

Ten columns (integers, doubles, timestamps, two of text) and a hundred days; zstd, but deflate for Avro. Each format is
compared with its own library: `pyarrow.parquet.write_table`, `pyarrow.orc.write_table`, `fastavro.writer`. The
metastore is in memory, files are local. The best of the repeats, in seconds of the clock and of the processor; with
`--peer` PyIceberg's too.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import from_arrow
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.table.changes.table_definition import TableDefinition
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.transaction import Created, Transaction
from tests.support.memory_metastore import InMemoryMetastore

DAYS = 100
_DAY = 86_400_000_000


def rows(count: int) -> pa.Table:
    """Random rows of a hundred days, in no order."""
    random = np.random.default_rng(7)
    words = pa.array([f"customer {number:07d} of {number % 97}" for number in range(50_000)])
    states = pa.array(["open", "paid", "shipped", "closed", "returned"])
    return pa.table(
        {
            "id": pa.array(np.arange(count), pa.int64()),
            "account": pa.array(random.integers(0, 100_000, count), pa.int64()),
            "quantity": pa.array(random.integers(0, 100, count), pa.int32()),
            "kind": pa.array(random.integers(0, 10, count), pa.int32()),
            "price": pa.array(random.random(count) * 1000, pa.float64()),
            "discount": pa.array(np.round(random.random(count), 2), pa.float64()),
            "at": pa.array(random.integers(0, DAYS * _DAY, count), pa.timestamp("us")),
            "changed": pa.array(np.arange(count) * 1_000_003, pa.timestamp("us")),
            "name": words.take(pa.array(random.integers(0, len(words), count))),
            "state": states.take(pa.array(random.integers(0, len(states), count))),
        }
    )


def table(folder: Path, data: pa.Table, kind: str, partitioned: bool) -> Table:
    """An empty table."""
    schema = from_arrow(data.schema)
    field = PartitionField(schema.find_field("at").field_id, 1000, parse_transform("day"), "at_day")
    spec = PartitionSpec(field, spec_id=0) if partitioned else UNPARTITIONED
    metastore = InMemoryMetastore()
    metastore.create_namespace("bench", {})
    properties = {"write.format.default": kind, "write.orc.compression-codec": "zstd"}
    definition = TableDefinition(schema, str(folder), spec, properties=properties)
    metadata = definition.resolved({}).new_metadata()
    transaction = Transaction(("bench", "t"), Created(metadata), metastore, storage := ArrowStorage())
    return Table(("bench", "t"), transaction.commit(), metastore, storage)


def library(kind: str, data: pa.Table, folder: Path) -> None:
    """The rows as one file, by the format's library alone."""
    if kind == "parquet":
        pq.write_table(data, folder / "raw.parquet", compression="zstd")
    elif kind == "orc":
        orc.write_table(data, str(folder / "raw.orc"), compression="zstd")
    else:
        from fastavro import parse_schema, writer

        names = {"int64": "long", "int32": "int", "double": "double", "string": "string"}
        micros = {"type": "long", "logicalType": "timestamp-micros"}
        fields = [{"name": each.name, "type": names.get(str(each.type), micros)} for each in data.schema]
        schema = parse_schema({"type": "record", "name": "row", "fields": fields})
        with open(folder / "raw.avro", "wb") as file:
            writer(file, schema, data.to_pylist(), codec="deflate")


def peer(catalog: Any, name: str, data: pa.Table, partitioned: bool) -> tuple[Any, Callable[[], None]]:
    """A table of PyIceberg, and an append to it."""
    found = catalog.create_table(f"bench.{name}", data.schema)
    if partitioned:
        from pyiceberg.transforms import DayTransform

        with found.update_spec() as update:
            update.add_field("at", DayTransform(), "at_day")
    return found, lambda: found.append(data)


def deletes(delete: Callable[[str], None]) -> Callable[[], None]:
    """A delete of about 1% of the rows, of others each time."""
    quantities = itertools.count()
    return lambda: delete(f"quantity = {next(quantities)}")


def best(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The best seconds of the clock and of the processor."""
    clock, processor = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return min(clock), min(processor)


def say(what: str, found: tuple[float, float], raw: tuple[float, float]) -> None:
    """One line, with the ratio to the library."""
    ratios = [each / base for each, base in zip(found, raw, strict=True)]
    sys.stdout.write(
        f"{what:<34} {found[0]:6.2f} s ({ratios[0]:4.2f}x)   processor {found[1]:6.2f} s ({ratios[1]:4.2f}x)\n"
    )
    sys.stdout.flush()


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", nargs="*", default=["parquet", "orc", "avro"])
    parser.add_argument("--peer", action="store_true")
    arguments = parser.parse_args()
    data = rows(arguments.rows)
    with tempfile.TemporaryDirectory(prefix="writing-") as name:
        folder = Path(name)
        raws = {}
        for kind in arguments.formats:
            raw = raws[kind] = best(lambda kind=kind: library(kind, data, folder), arguments.repeats)  # type: ignore[misc]
            say(f"{kind}: library", raw, raw)
            for partitioned in (False, True):
                target = table(folder / f"{kind}-{partitioned}", data, kind, partitioned)
                found = best(lambda target=target: target.append(data), arguments.repeats)  # type: ignore[misc]
                say(f"{kind}: {'by day' if partitioned else 'append'}", found, raw)
                if not partitioned:
                    say(f"{kind}: delete", best(deletes(target.delete), arguments.repeats), raw)
        if arguments.peer:
            from pyiceberg.catalog import load_catalog

            with EmbeddedMetastore() as metastore:
                catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=str(metastore.warehouse))
                catalog.create_namespace("bench")
                for partitioned in (False, True):
                    other, append = peer(catalog, f"t{partitioned}", data, partitioned)
                    found = best(append, arguments.repeats)
                    say(f"PyIceberg: {'by day' if partitioned else 'append'}", found, raws["parquet"])
                    if not partitioned:
                        found = best(deletes(other.delete), arguments.repeats)
                        say("PyIceberg: delete", found, raws["parquet"])


if __name__ == "__main__":
    main()
