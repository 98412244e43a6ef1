"""Sessions that are used by threads which did not make them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.thread_statements import APPENDS, EXPECTED, every_kind, few_kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.spark


def in_pool(run: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def inheriting(run: Callable[[], Any]) -> Any:
    from pyspark import InheritableThread

    found: list[Any] = []
    thread = InheritableThread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    return found[0]


def default(spark: SparkSession) -> SparkSession:
    return spark.builder.getOrCreate()


def test_statements_of_every_kind_work_in_another_thread(ice: SparkSession, namespace: str, tmp_path: Path) -> None:
    assert in_pool(lambda: every_kind(ice, namespace, tmp_path)) == EXPECTED


@pytest.mark.parametrize(
    ("thread", "session"),
    [
        pytest.param(inheriting, lambda spark: spark, id="an inheriting thread"),
        pytest.param(in_pool, lambda spark: spark.newSession(), id="a session of its own"),
        pytest.param(in_pool, default, id="the default session"),
    ],
)
def test_statements_work_in_threads_and_sessions_of_every_kind(
    ice: SparkSession, namespace: str, tmp_path: Path, thread: Any, session: Callable[[SparkSession], SparkSession]
) -> None:
    assert thread(lambda: few_kinds(session(ice), namespace, tmp_path)) == {"table": 6}


def test_a_thread_writes_by_the_settings_of_its_session(
    ice: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    name = f"{namespace}.t"
    ice.sql(f"create table {name} using iceberg tblproperties ('write.wap.enabled' = 'true') as select 1L id")
    auditing = ice.newSession()
    auditing.conf.set("spark.wap.branch", "audit")
    for number, session in enumerate((auditing, ice, auditing)):
        row = session.range(1)
        in_pool(lambda row=row: row.writeTo(name).append())
        in_pool(lambda row=row: row.write.format("iceberg").mode("append").save(name))
        stream = session.readStream.schema("id bigint").parquet(str(parquet(session, tmp_path)))
        write = stream.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / str(number)))
        assert in_pool(lambda write=write: write.toTable(name).awaitTermination(120))
    counts = {ref: catalog.load_table(name).scan().use_ref(ref).count() for ref in ("main", "audit")}
    assert counts == {"main": 4, "audit": 7}


def parquet(spark: SparkSession, folder: Path) -> Path:
    spark.range(1).write.mode("overwrite").parquet(str(folder / "source"))
    return folder / "source"


@pytest.mark.slow
def test_threads_that_share_those_of_java_work_as_well(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    given = {
        "uri": metastore.uri,
        "warehouse": metastore.warehouse,
        "namespace": namespace,
        "folder": str(tmp_path),
    }
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.thread_statements", json.dumps(given)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYSPARK_PIN_THREAD": "false", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found, counts = json.loads(ran.stdout.splitlines()[-1])
    assert found == [EXPECTED, EXPECTED]
    assert counts == [2 * APPENDS, 2 * APPENDS]
