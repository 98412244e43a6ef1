"""The Java sources of the bridge, compiled in the running JVM, or in one beside it while Spark starts."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.private_files import (
    cache_folder,
    installation_folder,
    is_of_installation,
    is_own,
    temporary_folder,
)
from hms_iceberg.spark.spark_versions import SUPPORTED, release, require_shapes, require_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark 3.5 is made with Scala 2.12: what has another name there, or none, for which the room `until_3_5` has a class.
_BEFORE_4 = (
    ("org.apache.spark.sql.classic.DataStreamReader", "org.apache.spark.sql.streaming.DataStreamReader"),
    ("org.apache.spark.sql.classic.", "org.apache.spark.sql."),
    ("org.apache.spark.sql.connector.catalog.procedures.", "hms_iceberg.bridge.until_3_5."),
    ("org.apache.spark.sql.connector.catalog.ProcedureCatalog", "hms_iceberg.bridge.until_3_5.ProcedureCatalog"),
    ("org.apache.spark.sql.types.VariantType", "hms_iceberg.bridge.until_3_5.VariantType"),
    ("java.lang.ref.Cleaner", "hms_iceberg.bridge.wire.Cleaner"),
    ("org.apache.parquet.conf.ParquetConfiguration", "hms_iceberg.bridge.until_3_5.ParquetConfiguration"),
    ("org.apache.parquet.io.LocalOutputFile", "hms_iceberg.bridge.until_3_5.LocalOutputFile"),
    ("scala.jdk.javaapi.CollectionConverters;", "hms_iceberg.bridge.until_3_5.CollectionConverters;"),
    ("scala.collection.immutable.Seq;", "scala.collection.Seq;"),
    ("scala.collection.immutable.IndexedSeq", "scala.collection.IndexedSeq"),
    ("scala.collection.IterableOnce", "scala.collection.GenTraversableOnce"),
)
# What has another name before Spark 4.1.
_BEFORE_4_1 = (
    ("org.apache.spark.sql.execution.streaming.checkpointing.", "org.apache.spark.sql.execution.streaming."),
)


@cache
def bridge_sources(spark_version: str) -> Mapping[str, str]:
    """The text of each file of the bridge, read once. Rooms of `versions` such as ``since_4_1`` are there from that
    version on, ``until_3_5`` up to it, and replace files of the same name."""
    version = release(spark_version)
    bridge = resources.files("hms_iceberg.spark").joinpath("bridge")
    of_versions = [room for room in bridge.joinpath("versions").iterdir() if _is_for(room.name, version)]
    found: dict[str, str] = {}
    for room in (*bridge.iterdir(), *sorted(of_versions, key=lambda room: _bound(room.name))):
        if room.is_dir():
            found |= {file.name: file.read_text("utf-8") for file in room.iterdir() if file.name.endswith(".java")}
    moved = (_BEFORE_4 if version < (4, 0) else ()) + (_BEFORE_4_1 if version < (4, 1) else ())
    return MappingProxyType({name: _moved(text, moved) for name, text in sorted(found.items())})


def _is_for(room: str, version: tuple[int, int]) -> bool:
    bound = _bound(room)
    return version >= bound if room.startswith("since") else version <= bound


def _bound(room: str) -> tuple[int, int]:
    """The version of a room such as ``since_4_1``."""
    _, major, minor = room.split("_")
    return int(major), int(minor)


def _moved(text: str, moved: tuple[tuple[str, str], ...]) -> str:
    for old, new in moved:
        text = text.replace(old, new)
    return text


logger = logging.getLogger(__name__)

PACKAGE = "hms_iceberg.bridge"
_END_SECONDS = 60.0
# A JVM that only compiles is at its end before the code of the slower compiler would pay.
_SHORT_LIVED = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_lock = threading.Lock()


def load_bridge(spark: SparkSession) -> Any:
    """The JVM class ``hms_iceberg.bridge.session.Bridge``, compiled once for a JVM, in the driver's class loader, which
    all its sessions share, and among the executors' files; needs a classic session."""
    from py4j.java_gateway import java_import

    gateway: Any = spark.sparkContext._gateway
    sources, name = _bridge_of(gateway, spark.version)
    with _lock:
        is_first = _loaded_jar(gateway, name) is None
        if is_first:
            _load(gateway, name, _jar(gateway, sources, name))
        jar = Path(_loaded_jar(gateway, name))
        if not is_own(jar):  # of the installation, or the cache was emptied: new executors need the classes too
            jar = _jar(gateway, sources, name)
    java_import(gateway.jvm, f"{PACKAGE}.session.Bridge")
    bridge = gateway.jvm.hms_iceberg.bridge
    require_shapes(spark.version, bridge.wire.Shapes.missing(spark.version), warn=is_first)
    _give_to_executors(spark, jar)
    return bridge.session.Bridge


def compile_ahead() -> Path:
    """Compiles the bridge for this environment's PySpark and Java, so that no session has to: for all users of the
    environment if this one may write there, else in this user's cache folder.

    Returns:
        The jar.

    Raises:
        UnsupportedError: that version of Spark is not supported, or this user has no folder to keep the jar in.
    """
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway()
    try:
        sources, name = _bridge_of(gateway, _version(gateway))
        jar = _installed(gateway, sources, name)
        if jar is None and cache_folder() is not None:
            jar = _jar(gateway, sources, name)
    finally:
        _end(gateway, gateway.proc)
    if jar is None:
        raise UnsupportedError(
            "Cannot keep the compiled bridge: this user has no cache folder of its own, and cannot write to "
            f"{installation_folder()}, or others can too. Run the command as the user that installed this package."
        )
    return jar


@contextmanager
def compiled_beside(java: Path) -> Iterator[None]:
    """While the block starts Spark, compiles the bridge in another JVM, unless that was done before or the jar could
    not be kept. What fails in it is left to the session, which then compiles in its own JVM."""
    from pyspark import __version__

    kept = cache_folder()
    jars = f"bridge-{_digest(bridge_sources(__version__))}-*.jar"
    if kept is None or any(any(folder.glob(jars)) for folder in (kept, installation_folder())):
        yield
        return
    compilation = threading.Thread(target=_compile_in, args=(java,), name="hms_iceberg-compilation", daemon=True)
    compilation.start()
    yield
    compilation.join()


def _compile_in(java: Path) -> None:
    """Compiles with a Java and the jars of PySpark's Spark, without the settings and packages that Spark would load."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from pyspark.find_spark_home import _find_spark_home

    classes = [os.path.join(_find_spark_home(), "jars", "*"), os.environ.get("SPARK_DIST_CLASSPATH", "")]
    try:
        with open(os.devnull, "w") as nowhere:  # py4j would open two, and leave them open if there is no such Java
            port, token, jvm = launch_gateway(
                classpath=os.pathsep.join(classes),
                javaopts=_SHORT_LIVED,
                die_on_exit=True,
                redirect_stdout=nowhere,
                redirect_stderr=nowhere,
                java_path=str(java),
                enable_auth=True,
                return_proc=True,
            )
            gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
            try:
                _jar(gateway, *_bridge_of(gateway, _version(gateway)))
            finally:
                _end(gateway, jvm)
    except Exception:
        logger.debug("The Spark bridge was not compiled while Spark started", exc_info=True)


def _end(gateway: Any, jvm: Any) -> None:
    gateway.shutdown()
    jvm.stdin.close()  # which ends the JVM
    try:
        jvm.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _version(gateway: Any) -> str:
    return str(gateway.jvm.org.apache.spark.package.SPARK_VERSION())


def _installed(gateway: Any, sources: Mapping[str, str], name: str) -> Path | None:
    """The jar in the environment's folder, made if it is not there; None if this user cannot, or others could change
    it."""
    jar = installation_folder() / name
    if not is_of_installation(jar):
        try:
            jar.parent.mkdir(parents=True, exist_ok=True)
            _write_jar(jar, _compile(gateway, sources))
            jar.chmod(0o644)
        except OSError:  # such as a folder of root's, or a file system that is read only
            return None
    return jar if is_of_installation(jar) else None


def _bridge_of(gateway: Any, version: str) -> tuple[Mapping[str, str], str]:
    """The sources for a version of Spark, and the name of their jar."""
    scala = str(gateway.jvm.scala.util.Properties.versionNumberString())
    require_version(version, scala)
    sources = bridge_sources(version)
    return sources, f"bridge-{_digest(sources)}-{version}-{scala}-{java_version(gateway)}.jar"


def java_version(gateway: Any) -> int:
    """The version of Java that the driver's JVM has, such as 8 or 17."""
    return int(str(gateway.jvm.java.lang.System.getProperty("java.specification.version")).removeprefix("1."))


def _digest(sources: Mapping[str, str]) -> str:
    return hashlib.sha256("\0".join(sources.values()).encode()).hexdigest()[:16]


def _loaded_jar(gateway: Any, name: str) -> Any:
    return gateway.jvm.java.lang.System.getProperty(f"{PACKAGE}.{name}")


def _load(gateway: Any, name: str, jar: Path) -> None:
    _driver_loader(gateway).addURL(gateway.jvm.java.io.File(str(jar)).toURI().toURL())
    gateway.jvm.java.lang.System.setProperty(f"{PACKAGE}.{name}", str(jar))


def _jar(gateway: Any, sources: Mapping[str, str], name: str) -> Path:
    """The compiled classes, from the environment or the user's cache folder where they have been compiled before. What
    another user could have put there, or changed, is not taken: they are compiled anew."""
    installed = installation_folder() / name
    if is_of_installation(installed):
        return installed
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
    found = _loader_of_jars(gateway)
    if found is None:
        raise UnsupportedError(
            "Cannot extend the Spark session: its driver has no class loader that takes further classes "
            "(org.apache.spark.util.MutableURLClassLoader). Start the driver with spark-submit or from PySpark."
        )
    return found


def _loader_of_jars(gateway: Any) -> Any:
    loader, found = _context_loader(gateway), None
    while loader is not None:
        if loader.getClass().getName().endswith("MutableURLClassLoader"):
            found = loader
        loader = loader.getParent()
    return found


def _context_loader(gateway: Any) -> Any:
    return gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _compile(gateway: Any, sources: Mapping[str, str]) -> dict[str, bytes]:
    jvm = gateway.jvm
    commons = jvm.org.codehaus.commons.compiler.util.resource
    units = gateway.new_array(commons.Resource, len(sources))
    for index, (name, text) in enumerate(sources.items()):
        units[index] = commons.StringResource(name, text)
    compiled = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler(
        commons.ResourceFinder.EMPTY_RESOURCE_FINDER,
        jvm.org.codehaus.janino.ClassLoaderIClassLoader(_loader_of_jars(gateway) or _context_loader(gateway)),
    )
    compiler.setClassFileCreator(commons.MapResourceCreator(compiled))
    compiler.setDebugLines(True)
    compiler.setDebugSource(True)
    try:
        compiler.compile(units)
    except Exception as error:
        version = _version(gateway)
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
