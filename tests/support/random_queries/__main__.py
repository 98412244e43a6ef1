"""Runs batches of random queries for some minutes, and tells what differs.

    python -m tests.support.random_queries --seed 7 --minutes 10
    python -m tests.support.random_queries --seed 7 --batch 3 --query 41

Another version of Spark: `PYTHONPATH` with its folder, as for tests. The exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.random_queries.trials import QUERIES_OF_A_BATCH, Trials
from tests.support.spark_session import INTERPRETED, extended_session


def main() -> int:
    """Runs them."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.random_queries")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--batch", type=int, help="only this one")
    parser.add_argument("--query", type=int, help="only this one of the batch")
    parser.add_argument("--queries", type=int, default=QUERIES_OF_A_BATCH, help="in a batch")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was run until then is told
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    with tempfile.TemporaryDirectory() as folder, EmbeddedMetastore() as metastore:
        spark = extended_session(metastore, **INTERPRETED)
        spark.sparkContext.setLogLevel("OFF")
        catalog = load_catalog("test", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("q")
        trials = Trials(spark, catalog, "q", Path(folder), given.seed, lambda fault: echo(f"FAULT {fault}\n"))
        until = time.monotonic() + 60 * given.minutes
        try:
            for batch in count() if given.batch is None else [given.batch]:
                if time.monotonic() > until:
                    break
                trials.batch(batch, until - time.monotonic(), given.query, given.queries)
                tally = trials.tally
                told = f"{tally.queries} queries, {len(tally.faults)} faults, {tally.seconds:.0f} s"
                echo(f"... batch {batch}: {told}", err=True)
            spark.stop()
        finally:
            echo(str(trials.tally))
    return 1 if trials.tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
