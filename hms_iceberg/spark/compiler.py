"""Compiles the bridge with Janino, the Java compiler that every Spark has, and loads it on driver and executors."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.private_files import cache_folder, is_own, temporary_folder
from hms_iceberg.spark.source_text import bridge_sources
from hms_iceberg.spark.spark_versions import SUPPORTED, require_shapes, require_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PACKAGE = "hms_iceberg.bridge"
_lock = threading.Lock()


def load_bridge(spark: SparkSession) -> Any:
    """The JVM class of the bridge, compiled where this JVM has not done so yet.

    The classes are added to the driver's class loader, which all sessions of the JVM share, and to the files that the
    session's SparkContext gives its executors.

    Args:
        spark: a classic session.

    Returns:
        Py4J's view of the class ``hms_iceberg.bridge.Bridge``.

    Raises:
        UnsupportedError: this version of Spark lacks something that the bridge needs; the message has what.
    """
    from py4j.java_gateway import java_import

    gateway: Any = spark.sparkContext._gateway
    scala = str(gateway.jvm.scala.util.Properties.versionNumberString())
    require_version(spark.version, scala)
    sources = bridge_sources(spark.version)
    versions = f"{spark.version} {scala} {java_version(gateway)}"
    name = f"bridge-{_digest(sources, versions)}.jar"
    with _lock:
        is_first = _loaded_jar(gateway, name) is None
        if is_first:
            _load(gateway, name, _jar(gateway, sources, name))
        jar = Path(_loaded_jar(gateway, name))
        if not is_own(jar):  # somebody emptied the cache; the driver has the classes, new executors need them
            jar = _jar(gateway, sources, name)
    java_import(gateway.jvm, f"{PACKAGE}.Bridge")
    bridge = gateway.jvm.hms_iceberg.bridge
    require_shapes(spark.version, bridge.Shapes.missing(spark.version), warn=is_first)
    _give_to_executors(spark, jar)
    return bridge.Bridge


def java_version(gateway: Any) -> int:
    """The version of Java that the driver's JVM has, such as 8 or 17."""
    return int(str(gateway.jvm.java.lang.System.getProperty("java.specification.version")).removeprefix("1."))


def _digest(sources: Mapping[str, str], versions: str) -> str:
    return hashlib.sha256("\0".join((versions, *sources.values())).encode()).hexdigest()[:16]


def _loaded_jar(gateway: Any, name: str) -> Any:
    return gateway.jvm.java.lang.System.getProperty(f"{PACKAGE}.{name}")


def _load(gateway: Any, name: str, jar: Path) -> None:
    _driver_loader(gateway).addURL(gateway.jvm.java.io.File(str(jar)).toURI().toURL())
    gateway.jvm.java.lang.System.setProperty(f"{PACKAGE}.{name}", str(jar))


def _jar(gateway: Any, sources: Mapping[str, str], name: str) -> Path:
    """The compiled classes, from the user's cache folder where they have been compiled before.

    What another user could have put there, or changed, is not taken: they are compiled anew.
    """
    jar = (cache_folder() or _folder_of_process()) / name
    if not is_own(jar):
        _write_jar(jar, _compile(gateway, sources))
        logger.debug("compiled the Spark bridge into %s", jar)
    return jar


def _folder_of_process() -> Path:
    """A cache folder for users without a home; deleted at the end of the process."""
    folder, pid = temporary_folder(), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == pid else None)
    return folder


def _driver_loader(gateway: Any) -> Any:
    """The class loader above those of all sessions: the topmost one that takes further jars."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = None
    while loader is not None:
        if loader.getClass().getName().endswith("MutableURLClassLoader"):
            found = loader
        loader = loader.getParent()
    if found is None:
        raise UnsupportedError(
            "Cannot extend the Spark session: its driver has no class loader that takes further classes "
            "(org.apache.spark.util.MutableURLClassLoader). Start the driver with spark-submit or from PySpark."
        )
    return found


def _compile(gateway: Any, sources: Mapping[str, str]) -> dict[str, bytes]:
    jvm = gateway.jvm
    commons = jvm.org.codehaus.commons.compiler.util.resource
    units = gateway.new_array(commons.Resource, len(sources))
    for index, (name, text) in enumerate(sources.items()):
        units[index] = commons.StringResource(name, text)
    compiled = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler(
        commons.ResourceFinder.EMPTY_RESOURCE_FINDER,
        jvm.org.codehaus.janino.ClassLoaderIClassLoader(_driver_loader(gateway)),
    )
    compiler.setClassFileCreator(commons.MapResourceCreator(compiled))
    compiler.setDebugLines(True)
    compiler.setDebugSource(True)
    try:
        compiler.compile(units)
    except Exception as error:
        version = jvm.org.apache.spark.package.SPARK_VERSION()
        reason = " ".join(str(error).splitlines()[1:2])
        raise UnsupportedError(
            f"Cannot extend this Spark session: the bridge does not compile with Spark {version}. Supported are "
            f"{SUPPORTED}. The compiler says: {reason}"
        ) from error
    return {str(name): bytes(compiled.get(name)) for name in compiled.keySet()}


def _write_jar(path: Path, classes: dict[str, bytes]) -> None:
    """Whole or not at all: another process may want the same jar."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as jar:
        for name in sorted(classes):
            jar.writestr(name, classes[name])
    os.replace(temporary, path)


def _give_to_executors(spark: SparkSession, jar: Path) -> None:
    context: Any = spark.sparkContext._jsc.sc()
    listed = context.listJars()
    if not any(str(listed.apply(index)).endswith(f"/{jar.name}") for index in range(listed.size())):
        context.addJar(str(jar))
