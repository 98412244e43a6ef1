"""Spark sessions for tests: small, quiet, on the test run's metastore."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.hms.embedded import EmbeddedMetastore


# Generated code costs more than such few rows are worth.
INTERPRETED = {"spark_sql_codegen_wholeStage": "false", "spark_sql_codegen_factoryMode": "NO_CODEGEN"}
# As users have it: for tests of reading and writing rows.
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}

TRANSACTION = "spark.hms_iceberg.transaction"
"""The setting that a session has for as long as a transaction on several tables is open."""


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
        .config("spark.executor.extraJavaOptions", os.environ.get("SPARK_SUBMIT_OPTS", ""))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.ui.explainMode", "simple")  # a plan that nobody looks at is told for every statement
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", metastore.warehouse)
        .config("spark.hadoop.hive.metastore.uris", metastore.uri)
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder


class SessionState:
    """What statements leave in a session that outlives them: its settings, current namespace, temporary views and
    functions, what is persisted, an open transaction, and its place as the default session. The next test would read
    in another time zone, find another table under a name, or count what others persisted.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._settings, self._current = _settings(spark), _current(spark)
        self._views, self._functions = _views(spark), _functions(spark)
        self._persisted = set(_persisted(spark))

    def is_now(self) -> bool:
        """Whether the session is as it was; what nobody uses any more may have gone."""
        now = SessionState(self._spark)
        is_cached = not self._spark._jsparkSession.sharedState().cacheManager().isEmpty()
        persists_more = bool(now._persisted - self._persisted)
        return not is_cached and not persists_more and {**vars(now), "_persisted": self._persisted} == vars(self)

    def restore(self) -> None:
        """Takes away what has come, and sets what was set."""
        from hms_iceberg.spark import extend

        spark = self._spark
        if type(spark)._instantiatedSession is not spark:
            extend(spark)
        now = _settings(spark)
        if TRANSACTION in now.keys() - self._settings.keys():
            spark.sql("call spark_catalog.system.rollback_transaction()")
            now = _settings(spark)
        if _current(spark) != self._current:
            spark.sql(f"use {self._current}")
        for name in _views(spark) - self._views:
            spark.catalog.dropTempView(name)
        for name in _functions(spark) - self._functions:
            spark.sql(f"drop temporary function `{name}`")
        if not spark._jsparkSession.sharedState().cacheManager().isEmpty():
            spark.catalog.clearCache()
        for number, rdd in _persisted(spark).items():
            if number not in self._persisted:
                rdd.unpersist()
        for key in now.keys() - self._settings.keys():
            spark.conf.unset(key)
        for key, value in self._settings.items():
            if now.get(key) != value:
                spark.conf.set(key, value)


def _settings(spark: SparkSession) -> dict[str, str]:
    """All in one answer of the JVM: PySpark's own `getAll` asks it about each of them by itself."""
    entries = spark._jsparkSession.conf().getAll().mkString("\0").split("\0")
    return dict(entry.split(" -> ", 1) for entry in entries)


def _current(spark: SparkSession) -> str:
    """The current namespace, with its catalog."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    return ".".join(f"`{part}`" for part in (manager.currentCatalog().name(), *manager.currentNamespace()))


def _views(spark: SparkSession) -> set[str]:
    listed = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return {listed.apply(index).table() for index in range(listed.size())}


def _functions(spark: SparkSession) -> set[str]:
    """Temporary functions; those that Spark itself has are in its registry, too, and stay."""
    listed = spark._jsparkSession.sessionState().catalog().listTemporaryFunctions()
    return set(filter(None, listed.mkString("\0").split("\0")))


def _persisted(spark: SparkSession) -> dict[int, Any]:
    """The RDDs that are persisted, by their numbers."""
    return dict(spark.sparkContext._jsc.getPersistentRDDs())


def extended_session(metastore: EmbeddedMetastore, **settings: Any) -> SparkSession:
    """A new session that reads Iceberg tables."""
    from hms_iceberg.spark import configure

    session = configure(quiet_builder(metastore, **settings)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
