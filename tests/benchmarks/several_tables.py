"""One commit to several tables beside the commits of its tables one after the other.

    python -m tests.benchmarks.several_tables [--rounds 10]

Counts processor seconds, this process's and the metastore's, and calls to the metastore and to the storage. Both ways
append a row to each table, and take turns in one run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from click import echo

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.killed_catalog import KilledAt

ROWS = pa.table({"id": pa.array([1], pa.int64())})


def apart(catalog: Catalog, names: list[str]) -> None:
    for name in names:
        catalog.load_table(name).append(ROWS)


def together(catalog: Catalog, names: list[str]) -> None:
    with catalog.transaction() as transaction:
        for name in names:
            transaction.table(name).append(ROWS)


def processor_seconds(process: int) -> float:
    """Of a process that may be another one."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(work: Callable[[], None], server: int, calls: list[str]) -> tuple[float, float, int]:
    calls.clear()
    began, server_began = time.process_time(), processor_seconds(server)
    work()
    return time.process_time() - began, processor_seconds(server) - server_began, len(calls)


def compare(server: EmbeddedMetastore, locks: str, tables: int, rounds: int) -> None:
    properties = {"warehouse": server.warehouse, "iceberg.engine.hive.lock-enabled": locks}
    with load_catalog("here", uri=server.uri, **properties) as catalog:
        namespace = f"n{tables}{locks}"
        catalog.create_namespace(namespace)
        names = [f"{namespace}.t{number}" for number in range(tables)]
        for name in names:
            catalog.create_table(name, ROWS.schema).append(ROWS)
        counted = KilledAt(catalog)
        found: dict[str, list[tuple[float, float, int]]] = {"apart": [], "together": []}
        for _ in range(rounds):
            for name, work in (("apart", apart), ("together", together)):
                assert server.pid is not None
                found[name].append(measured(partial(work, catalog, names), server.pid, counted.calls))
    for number, what in enumerate(("this process", "the metastore's", "calls")):
        one, other = (sum(each[number] for each in found[way]) / rounds for way in ("apart", "together"))
        echo(f"{tables} tables, locks {locks}, {what}: apart {one:.3f}, together {other:.3f}, {other / one:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with EmbeddedMetastore() as server:
        for locks in ("true", "false"):
            for tables in (2, 6):
                compare(server, locks, tables, rounds)


if __name__ == "__main__":
    main()
