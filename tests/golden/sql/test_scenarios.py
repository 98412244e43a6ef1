"""SQL in Spark gives what Apache Iceberg 1.12's own runtime gave: a spread of the recorded scenarios, or all.

`HMS_ICEBERG_SQL_GOLDEN=all` runs all; `HMS_ICEBERG_SQL_GOLDEN=merge/` those whose name (group/name/version) matches.
"""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hms_iceberg.spark import extend
from hms_iceberg.spark.spark_versions import release
from tests.support.spread import SEED
from tests.support.sql_scenarios import Scenario, ScenarioRun, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALL = scenarios(Path(__file__).parent / "public.tar.gz")
EVERY = 20
DATABASE = "gold"
NUMBERS = count(1)

# What is not as Apache Iceberg has it, and why. One that becomes right fails its test, and is to be taken out.
EXCEPTIONS: dict[str, str] = {
    "catalog/analyze_and_explain/v2": "ANALYZE TABLE writes Iceberg's statistics here; Apache Iceberg refuses it",
    "extension_ddl/ddl_partition_fields_add_all/v2": (
        "a second look at t.partitions in one session: Apache Iceberg's cached metadata table lacks the field that was "
        "added in between (ts_hour)"
    ),
    "streaming/stream_foreach_batch_merge/v2": (
        "each session of Apache Iceberg has a cache of tables of its own, so that the one that reads does not see what "
        "the stream's session merged; here it does"
    ),
    "v3_types/v3_defaults_refused_in_sql/v3": "defaults of columns can be set in SQL here; Apache Iceberg refuses them",
}
SINCE_SPARK_4_2 = {
    "create/create_comment_and_show_create/v2": "Spark itself shows COLLATE UTF8_BINARY with every string",
}
LEFT_OUT = "Spark itself has no INSERT that leaves columns out, and no defaults in it"
NO_EVOLUTION = "Spark itself has no MERGE WITH SCHEMA EVOLUTION"
NO_MERGE_INTO = "PySpark itself has no DataFrame.mergeInto"
NO_COPIES = "tables of format version 3 are changed by merge-on-read here: rows cannot be copied with their lineage"
# Apache Iceberg 1.12 on Spark 3.5.9 gives the same, but for the copies.
UNTIL_SPARK_3_5 = {
    "alter/alter_several_columns_at_once/v2": "Spark itself changes one column a statement",
    "catalog/temp_view_and_variables/v2": "Spark itself has no variables",
    "create/create_basic_types_describe/v2": LEFT_OUT,
    "create/create_basic_types_describe/v3": LEFT_OUT,
    "create/create_comment_and_show_create/v2": "Spark itself shows buckets as CLUSTERED BY",
    "insert/insert_by_name/v2": LEFT_OUT,
    "insert/insert_default_keyword_v2/v2": LEFT_OUT,
    "insert/insert_default_keyword_v2/v3": LEFT_OUT,
    "merge/merge_evolution_new_column/v2": NO_EVOLUTION,
    "merge/merge_evolution_new_column/v3": NO_EVOLUTION,
    "merge/merge_evolution_switched_off/v2": NO_EVOLUTION,
    "partition_evolution/partitioned_evolution_add_field/v3": NO_COPIES,
    "partition_evolution/partitioned_evolution_drop_field/v3": NO_COPIES,
    "writer_v2/merge_into_dataframe_api/v2": NO_MERGE_INTO,
    "writer_v2/merge_into_dataframe_api/v3": NO_MERGE_INTO,
    "writer_v2/merge_into_dataframe_api_evolution/v2": NO_MERGE_INTO,
    "writer_v2/writeto_append/v2": LEFT_OUT,
}


def chosen() -> list[Scenario]:
    wanted = os.environ.get("HMS_ICEBERG_SQL_GOLDEN", "")
    if wanted == "all":
        return ALL
    return [each for each in ALL if re.search(wanted, each.name)] if wanted else ALL[SEED % EVERY :: EVERY]


@pytest.fixture(scope="module")
def gold(spark: SparkSession, metastore: EmbeddedMetastore) -> SparkSession:
    """A session whose catalog `ice` is the same metastore."""
    session = extend(spark, catalogs={"ice": {"uri": metastore.uri}})
    session.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    session.sql(f"create database if not exists {DATABASE}")
    return session


@pytest.mark.parametrize("scenario", chosen(), ids=lambda scenario: scenario.name)
def test_every_step_gives_what_apache_iceberg_gave(scenario: Scenario, gold: SparkSession, tmp_path: Path) -> None:
    problem = ScenarioRun(gold, scenario, DATABASE, next(NUMBERS), tmp_path).problem()
    of_version = SINCE_SPARK_4_2 if release(gold.version) >= (4, 2) else {}
    if release(gold.version) <= (3, 5):
        of_version = UNTIL_SPARK_3_5
    if scenario.name in EXCEPTIONS or scenario.name in of_version:
        assert problem is not None, "it is right now: take it out of the exceptions"
    else:
        assert problem is None, problem


def test_every_exception_is_a_scenario_with_a_reason() -> None:
    assert len(ALL) == 280
    assert EXCEPTIONS.keys() | SINCE_SPARK_4_2.keys() | UNTIL_SPARK_3_5.keys() <= {each.name for each in ALL}
    assert len(EXCEPTIONS) == 4
    assert len(SINCE_SPARK_4_2) == 1
    assert len(UNTIL_SPARK_3_5) == 17
