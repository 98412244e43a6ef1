"""Spark sessions for tests: small, quiet, on the test run's metastore."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.hms.embedded import EmbeddedMetastore


def quiet_builder(metastore: EmbeddedMetastore, **settings: Any) -> SparkSession.Builder:
    """A builder of sessions; settings have underscores in the place of dots."""
    with warnings.catch_warnings():
        # PySpark looks at the version of pandas when it is imported, whether or not pandas is used.
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("hms_iceberg tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", metastore.warehouse)
        .config("spark.hadoop.hive.metastore.uris", metastore.uri)
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder


def extended_session(metastore: EmbeddedMetastore, **settings: Any) -> SparkSession:
    """A new session that reads Iceberg tables."""
    from hms_iceberg.spark import configure

    session = configure(quiet_builder(metastore, **settings)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
