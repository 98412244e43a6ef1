"""Spark as the engine of `table.maintenance.rewrite_data_files(engine=SparkEngine(spark))`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hms_iceberg.errors import IcebergError, InvalidInputError, StorageError
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite
from hms_iceberg.spark.bridge_server import BridgeServer
from hms_iceberg.spark.bridge_service import BridgeService
from hms_iceberg.spark.rewriting.runs import SparkRewrite
from hms_iceberg.spark.workers import worker_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """Has Spark write the groups of a rewriting, for tables that outgrow this machine.

    Args:
        spark: an extended session; see :func:`hms_iceberg.spark.extend`.

    Raises:
        InvalidInputError: the session is not extended.
    """

    def __init__(self, spark: SparkSession) -> None:
        from hms_iceberg.spark.compiler import java_version, load_bridge

        self._spark = spark
        self._bridge = load_bridge(spark)
        self._java = java_version(spark.sparkContext._gateway)
        if self._bridge.properties(spark._jsparkSession) is None:
            raise InvalidInputError(
                "This Spark session does not know Iceberg tables: use the one that hms_iceberg.spark.extend(spark) "
                "returns."
            )

    def run(self, rewrite: DataFileRewrite) -> None:
        """Writes the groups of a plan; see `hms_iceberg.maintenance.rewrite.rewriting.Engine`.

        Raises:
            IcebergError: as of `rewrite_data_files`.
        """
        run, service = SparkRewrite(rewrite), BridgeService()
        header = json.dumps(service.tables.rewrites.open(run))
        server = BridgeServer(service, self._java)
        try:
            self._bridge.rewrite(self._spark._jsparkSession, header, server.for_bridge(), worker_function(self._spark))
            rewrite.commits.end()
        except IcebergError:
            raise
        except Exception as error:  # of the JVM
            raise run.failure or StorageError(f"Spark did not rewrite {rewrite.name}: {error}") from error
        finally:
            server.close()
            rewrite.commits.abandon()
