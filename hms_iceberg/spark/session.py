"""Puts the extension into a Spark session."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.storage.hdfs.hadoop_settings import is_of_clusters
from hms_iceberg.errors import ConfigurationError, MissingDependencyError, UnsupportedError
from hms_iceberg.hms.embedded.jars import MINIMUM_JAVA, find_java
from hms_iceberg.reports import listen_as_named
from hms_iceberg.spark.compiler import compiled_beside, java_version, load_bridge
from hms_iceberg.spark.spark_versions import release
from hms_iceberg.spark.workers import choose_python, worker_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_PROPERTY_PREFIX = "spark.hms_iceberg."
# Executors read files with these settings, so that planning takes what means the same.
_S3A = {
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.endpoint.region": "s3.region",
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
}
_FIRST_OF_JAVA_17, _JAVA_OF_SPARK_3 = (4, 0), 8
_GATEWAY_OF_SUBMIT = "PYSPARK_GATEWAY_PORT"
_REMOTE = "spark.remote"
_AWS = "s3.amazonaws.com"


def extend(
    spark: SparkSession,
    properties: Mapping[str, str] | None = None,
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
) -> SparkSession:
    """A session like the given one that also reads the Iceberg tables of its Hive metastore.

    The new session shares everything with the given one (SparkContext, metastore, settings, temporary views,
    functions) and becomes the one that ``SparkSession.builder.getOrCreate()`` and ``SparkSession.active()`` return.
    Hive tables, and the session that was given, stay as they were. A session that is extended already comes back as
    it is, unless there are other properties for it: that makes another session, and both work side by side. What
    ``newSession()`` makes of an extended session is extended in the same way. Python workers of a local session run
    this interpreter, unless ``spark.pyspark.python`` or ``PYSPARK_PYTHON`` say otherwise.

    Args:
        spark: a classic PySpark session with Hive support (``enableHiveSupport()``).
        properties: storage properties for reading metadata and manifests (``s3.endpoint`` …), as for a catalog;
            settings of the session that start with ``spark.hms_iceberg.`` count too, without that prefix, and for
            S3 what they do not say is taken from the settings of ``s3a`` (``spark.hadoop.fs.s3a.endpoint`` …), for
            HDFS from those of Hadoop.
        catalogs: further metastores by the name that their tables have in SQL, with their properties:
            ``{"ice": {"uri": "thrift://host:9083"}}`` for ``select * from ice.db.t``. The settings of Apache Iceberg's
            ``spark.sql.catalog.ice=org.apache.iceberg.spark.SparkCatalog`` and ``spark.sql.catalog.ice.uri=…`` mean the
            same if there is no Iceberg JAR.

    Returns:
        the extended session; the given one if it is extended with the same properties already.

    Raises:
        UnsupportedError: a Spark Connect session, or a version of Spark that has not what is needed.
        MissingDependencyError: PySpark is not installed.
        ConfigurationError: the server that the bridge asks cannot be started; or the session uses another catalog
            of such a name already.
    """
    _require_classic(spark)
    from pyspark.sql import SparkSession

    # Not needed in Python workers, which import this package too.
    from hms_iceberg.spark.bridge_server import BridgeServer
    from hms_iceberg.spark.bridge_service import BridgeService

    choose_python(spark)
    bridge = load_bridge(spark)
    known = bridge.properties(spark._jsparkSession)
    before = _session_properties(spark) if known is None else dict(known)
    wanted = {**before, **(properties or {})}
    session = spark
    if known is None or wanted != before:
        listen_as_named(wanted)
        server = BridgeServer(BridgeService(wanted), java_version(spark.sparkContext._gateway))
        try:
            extended = bridge.extend(spark._jsparkSession, wanted, server.for_bridge(), worker_function(spark))
        except BaseException:
            server.close()
            raise
        session = SparkSession(spark.sparkContext, extended)
    for name, settings in (catalogs or {}).items():
        if not bridge.addCatalog(session._jsparkSession, name, dict(settings)):
            raise ConfigurationError(
                f"This session uses another catalog named {name} already, and Spark keeps a catalog until its session "
                f"ends: give the new one another name, or extend spark.newSession()."
            )
    _make_default(session, bridge)
    return session


def configure(
    builder: Any,
    properties: Mapping[str, str] | None = None,
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
) -> Any:
    """A builder whose ``getOrCreate()`` and ``create()`` return extended sessions.

    Args:
        builder: ``SparkSession.builder``, with whatever has been set on it; Hive support is switched on.
        properties: storage properties, as for :func:`extend`.
        catalogs: further metastores, as for :func:`extend`.

    Returns:
        A ``SparkSession.Builder``, on which further settings can be made.

    Raises:
        MissingDependencyError: PySpark is not installed.
        JavaNotFoundError: raised by `getOrCreate()` and `create()` if Spark would have to start and finds no Java that
            it runs on.
        UnsupportedError: raised by `getOrCreate()` and `create()`, as by :func:`extend`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _no_pyspark() from error

    class ExtendingBuilder(SparkSession.Builder):
        """Extends what the builder makes."""

        def getOrCreate(self) -> SparkSession:  # noqa: N802  (the name is PySpark's)
            with _starting(self._options):
                spark = super().getOrCreate()
            return extend(spark, properties, catalogs)

        def create(self) -> SparkSession:
            with _starting(self._options):
                spark = super().create()
            return extend(spark, properties, catalogs)

    extending = ExtendingBuilder()
    extending._options.update(builder._options)
    return extending.enableHiveSupport()


def _starting(options: Mapping[str, object]) -> AbstractContextManager[None]:
    """What goes on while Spark starts. Looks for Java before Spark's launcher does, which would tell of it in a hundred
    lines."""
    from pyspark import SparkContext, __version__

    if SparkContext._gateway is not None or _GATEWAY_OF_SUBMIT in os.environ or _REMOTE in options:
        return nullcontext()
    minimum = MINIMUM_JAVA if release(__version__) >= _FIRST_OF_JAVA_17 else _JAVA_OF_SPARK_3
    return compiled_beside(find_java(f"Spark {__version__}", minimum))


def _session_properties(spark: SparkSession) -> dict[str, str]:
    """Storage properties from the session's settings: this package's own, and `s3a` settings where they are missing."""
    settings = spark.sparkContext.getConf().getAll()
    own = {key[len(_PROPERTY_PREFIX) :]: value for key, value in settings if key.startswith(_PROPERTY_PREFIX)}
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    found = {name: hadoop.getTrimmed(key) for key, name in _S3A.items()}
    if found["s3.endpoint"] == _AWS:  # Spark 3.5 says so where nobody does; other regions have other addresses
        found["s3.endpoint"] = ""
    if found["s3.endpoint"] and "://" not in found["s3.endpoint"]:
        scheme = "https" if hadoop.getBoolean("fs.s3a.connection.ssl.enabled", True) else "http"
        found["s3.endpoint"] = f"{scheme}://{found['s3.endpoint']}"
    return _hdfs_settings(hadoop) | {name: value for name, value in found.items() if value} | own


def _hdfs_settings(hadoop: Any) -> dict[str, str]:
    """Settings of HDFS clusters in the session, without Hadoop's defaults."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    written = jvm.java.io.StringWriter()
    jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(hadoop, written)
    return {
        each["key"]: each["value"]
        for each in json.loads(written.toString())["properties"]
        if is_of_clusters(each["key"]) and not each["resource"].endswith("-default.xml")
    }


def _require_classic(spark: Any) -> None:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _no_pyspark() from error
    module = type(spark).__module__
    if module.startswith("pyspark.sql.connect"):
        raise UnsupportedError(
            "Cannot extend a Spark Connect session: its driver is in another process, often on another machine, and "
            "this process cannot reach the driver's JVM, in which the extension has to live. Use a classic session "
            "(SparkSession.builder without remote() and without spark.api.mode=connect)."
        )
    if not isinstance(spark, SparkSession):
        raise UnsupportedError(f"Cannot extend {spark!r}: expected a pyspark.sql.SparkSession.")
    if spark.sparkContext._jsc is None:
        raise UnsupportedError("Cannot extend a session that was stopped: build a new one and extend that.")


def _no_pyspark() -> MissingDependencyError:
    return MissingDependencyError(
        "PySpark is not installed, and reading Iceberg tables from Spark needs it: pip install 'hms_iceberg[spark]'"
    )


def _make_default(session: SparkSession, bridge: Any) -> None:
    """Later calls of getOrCreate() and active() get the extended session."""
    from pyspark.sql import SparkSession

    SparkSession._instantiatedSession = session
    SparkSession._activeSession = session
    bridge.makeDefault(session._jsparkSession)
