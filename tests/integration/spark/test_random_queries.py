"""Complex queries at random, on tables with a history and on plain copies of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.random_queries.trials import Trials
from tests.support.spread import SEED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark

SECONDS = 25


def test_random_queries_give_the_rows_that_they_give_on_plain_copies(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    trials = Trials(spark, catalog, namespace, tmp_path, SEED % 1_000_000)
    trials.batch(0, SECONDS, queries=40, tables=2)
    assert not trials.tally.faults, "\n".join(trials.tally.faults)
    assert trials.tally.with_rows
