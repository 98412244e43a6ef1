"""Settings of a query: how Spark plans and runs it, and how tables are read."""

from __future__ import annotations

from tests.support.random_queries.draws import Draws

ON_OFF = ("true", "false")
# The first value is what a query gets that shrinks.
SETTINGS: dict[str, tuple[str, ...]] = {
    "spark.sql.adaptive.enabled": ON_OFF,
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.codegen.wholeStage": ("false", "false", "true"),  # costs more than such few rows are worth
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "NO_CODEGEN", "FALLBACK"),
    "spark.sql.parquet.enableVectorizedReader": ON_OFF,
    "spark.sql.orc.enableVectorizedReader": ON_OFF,
    "spark.sql.parquet.columnarReaderBatchSize": ("4096", "3", "64"),
    "spark.sql.orc.columnarReaderBatchSize": ("4096", "3", "64"),
    "spark.sql.parquet.filterPushdown": ON_OFF,
    "spark.sql.orc.filterPushdown": ON_OFF,
    "spark.sql.autoBroadcastJoinThreshold": ("10485760", "-1"),
    "spark.sql.join.preferSortMergeJoin": ON_OFF,
    "spark.sql.cbo.enabled": ("false", "true"),
    "spark.sql.cbo.joinReorder.enabled": ("false", "true"),
    "spark.sql.cbo.planStats.enabled": ("false", "true"),
    "spark.sql.shuffle.partitions": ("2", "1", "5"),
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ON_OFF,
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": ("false", "true"),
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": ("10GB", "0"),
    "spark.sql.optimizer.nestedSchemaPruning.enabled": ON_OFF,
    "spark.sql.exchange.reuse": ON_OFF,
    "spark.sql.files.maxPartitionBytes": ("134217728", "65536"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York", "Asia/Kolkata"),
    "spark.sql.optimizer.excludedRules": ("", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"),
    "spark.sql.iceberg.planning.preserve-data-grouping": ("false", "true"),
    "spark.sql.iceberg.aggregate-push-down.enabled": ON_OFF,
    "spark.sql.iceberg.vectorization.enabled": ON_OFF,
    "spark.sql.sources.v2.bucketing.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": ON_OFF,
    "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.shuffle.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.sorting.enabled": ("false", "true"),
    "spark.sql.sources.v2.bucketing.partition.filter.enabled": ("false", "true"),
    "spark.sql.requireAllClusterKeysForCoPartition": ("true", "false"),
}
# Where one is on, so are its fellows: alone none of them does anything.
TOGETHER = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "spark.sql.sources.v2.bucketing.enabled",
    "spark.sql.cbo.joinReorder.enabled": "spark.sql.cbo.enabled",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "spark.sql.optimizer.dynamicPartitionPruning.enabled",
}


def drawn(draw: Draws) -> dict[str, str]:
    """A value of some of them; the others are as a session has them."""
    settings = {name: draw.of(values) for name, values in SETTINGS.items() if draw.maybe(35)}
    for name, other in TOGETHER.items():
        if settings.get(name) == "true":
            settings[other] = "true"
    if settings.get("spark.sql.sources.v2.bucketing.enabled") == "true" and draw.maybe(70):
        settings["spark.sql.autoBroadcastJoinThreshold"] = "-1"
    return settings
