"""Speculative copies of tasks: one of them is counted, and the others leave nothing.

Spark starts a copy on another host only, so that a cluster with two addresses of this machine is needed. The executor
on one of them is stopped while it writes: a statement that ends nevertheless has had copies of its tasks.
"""

from __future__ import annotations

import os
import re
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from tests.integration.spark.test_killed_writers import FORMATS, OLD, ROWS, SELECT, SLOWLY, content, wait_for
from tests.support.spark_cluster import StandaloneCluster
from tests.support.spark_statements import Driver
from tests.support.spread import ALL

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not ALL, reason="with HMS_ICEBERG_TESTS=all: it starts a cluster of five processes"),
]

STEPS = 6_000
FIRST, SECOND = "127.0.0.1", "127.0.0.2"
MERGE = (
    f"merge into {{t}} t using (select id from range(0, {ROWS}, 1, 2)) s on t.id = s.id"
    " when matched then update set v = slow(t.id) + 1"
)
INSERTED = {n: n for n in range(2 * ROWS)}
STATEMENTS = {
    "inserted": (f"insert into {{t}} {SELECT}", INSERTED),
    "fanned_out": (f"insert into {{t}} {SELECT}", INSERTED),
    "merged_cow": (MERGE, {n: n + 1 for n in OLD}),
    "merged_mor": (MERGE, {n: n + 1 for n in OLD}),
    "deleted_mor": ("delete from {t} where slow(id) % 2 = 0", {n: n for n in OLD if n % 2}),
}
"""By the names of tables: statements without a shuffle, whose two tasks write, and the rows after them."""
CONF = {
    "spark.executor.memory": "600m",
    # both executors are there before the first statement
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.efficiency.enabled": "false",
    "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled": "false",
}


def make(catalog: Catalog, name: str) -> Table:
    form = FORMATS[list(STATEMENTS).index(name.rpartition(".")[2]) % 3]
    properties = {
        "format-version": "3",
        "write.format.default": form,
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
    }
    for kind in ("delete", "merge"):
        properties |= {f"write.{kind}.distribution-mode": "none"}
        properties |= {f"write.{kind}.mode": "merge-on-read" if name.endswith("_mor") else "copy-on-write"}
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    bucket = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "bucket"))
    spec = {"partition_spec": bucket} if name.endswith("fanned_out") else {}
    table = catalog.create_table(name, schema, properties=properties, **spec)
    for start in (0, 1):
        table.append(pa.table({"id": OLD[start::2], "v": OLD[start::2]}))
    return table


def files(table: Table) -> set[str]:
    folder = Path(table.location().removeprefix("file:")) / "data"
    return {str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")}


def needed_files(table: Table) -> set[str]:
    paths = table.refresh().inspect.all_files().column("file_path").to_pylist()
    return {path.removeprefix("file:") for path in paths}


def writing(table: Table, before: set[str], writers: int) -> bool:
    return len(files(table) - before) >= writers


def clean(table: Table) -> bool:
    return files(table) == needed_files(table)


def test_copies_of_slow_tasks_double_no_row_and_leave_no_file(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    first = "select sum(id) from range(0, 1000, 1, 2)"
    with StandaloneCluster(tmp_path, [FIRST, SECOND]) as cluster:
        conf = {**CONF, "spark.master": cluster.address}
        with Driver(uri=metastore.uri, warehouse=metastore.warehouse, conf=conf, first=first) as driver:
            assert driver.wait() == "ready\n"
            stopped = cluster.executor(SECOND)
            for name, (text, rows) in STATEMENTS.items():
                table = make(catalog, f"{namespace}.{name}")
                before, deletes = files(table), name.startswith("deleted")
                if deletes:  # its tasks write no file that tells they are at work
                    os.kill(stopped, signal.SIGSTOP)
                slow = re.sub(r"slow\((.*?)\)", lambda found: SLOWLY.format(found[1], STEPS), text)
                driver.begin([slow.format(t=f"{namespace}.{name}")])
                if not deletes:
                    writers = 5 if name == "fanned_out" else 2  # one task has four files open, if it fans out
                    wait_for(partial(writing, table, before, writers), driver)
                    os.kill(stopped, signal.SIGSTOP)
                assert driver.wait() == "[]\n"
                assert content(table) == rows, name
                assert deletes or files(table) > needed_files(table), name  # of the stopped executor
                os.kill(stopped, signal.SIGCONT)
                wait_for(partial(clean, table), driver, seconds=60)
