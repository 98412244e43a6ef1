"""Trino as a server of its own on a metastore: its archive out of Maven, and only what Iceberg needs of it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.request
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hms_iceberg.hms.embedded.jars import java_version
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)
from tests.support.maven import CACHE, UnavailableError
from tests.support.started_server import StartedServer

VERSION = "476"  # the last whose server is in Maven Central
JAVA = 24
_START_SECONDS = 300.0
_NODE_SECONDS = 30.0


def home() -> Path:
    """Its folder, filled at the first call on a machine.

    Raises:
        UnavailableError: it cannot be fetched.
    """
    folder = CACHE / f"trino-{VERSION}"
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("Trino is fetched with Maven, and there is no `mvn` on PATH")
    work = CACHE / f"{folder.name}.{os.getpid()}.part"
    artifact = f"-Dartifact=io.trino:trino-server:{VERSION}:tar.gz"
    command = [maven, "-B", "-q", "dependency:copy", artifact, f"-DoutputDirectory={work}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(work, ignore_errors=True)
        raise UnavailableError(f"Maven cannot fetch Trino: {error}") from error
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(work, filter="data")  # plugins share jars by hard links, so that all are unpacked first
    archive.unlink()
    (unpacked,) = work.iterdir()
    for plugin in (unpacked / "plugin").iterdir():
        if plugin.name != "iceberg":
            shutil.rmtree(plugin)
    unpacked.rename(folder)
    work.rmdir()
    return folder


def _java() -> Path:
    found = [java for java in sorted(Path("/usr/lib/jvm").glob("*/bin/java")) if java_version(java) >= JAVA]
    if not found:
        raise UnavailableError(f"Trino {VERSION} needs Java {JAVA}, and none is under /usr/lib/jvm")
    return found[-1]


class Trino(StartedServer):
    """A server with the catalog `ice`, as a context manager.

    Args:
        uri: of the metastore.
        folder: an empty folder for its settings and log.
        settings: the catalog's, if it is on something else.
    """

    def __init__(self, uri: str, folder: Path, settings: str = "") -> None:
        super().__init__(folder)
        self._uri = uri
        self._settings = settings

    def __enter__(self) -> Trino:
        """Starts it, and waits until it takes statements.

        Raises:
            UnavailableError: it cannot be had here.
        """
        server, java = home(), _java()
        self._configure()
        command = [
            *(str(java), "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djdk.attach.allowAttachSelf=true"),
            *("--add-modules=jdk.incubator.vector", "--sun-misc-unsafe-memory-access=allow", "-Duser.timezone=UTC"),
            *(f"-Dconfig={self.folder / 'etc/config.properties'}", f"-Dplugin.dir={server / 'plugin'}"),
            *(f"-Dlog.levels-file={self.folder / 'etc/log.properties'}", "-cp", f"{server / 'lib'}/*"),
            "io.trino.server.TrinoServer",
        ]
        self.start(command, self._ready, _START_SECONDS)
        return self

    def _configure(self) -> None:
        (self.folder / "etc" / "catalog").mkdir(parents=True)
        own = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(self.port),
            "discovery.uri": f"http://127.0.0.1:{self.port}",
            "node.environment": "tests",
            "node.id": str(uuid.uuid4()),
            "node.bind-ip": "127.0.0.1",
            "node.internal-address": "127.0.0.1",
            "query.max-memory-per-node": "256MB",
            "memory.heap-headroom-per-node": "256MB",
            "catalog.config-dir": str(self.folder / "etc" / "catalog"),
        }
        iceberg = {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "hive_metastore",
            "hive.metastore.uri": self._uri,
            "fs.hadoop.enabled": "true",
            "iceberg.unique-table-location": "true",
        }
        for name, settings in (("config.properties", own), ("catalog/ice.properties", iceberg)):
            lines = (f"{key}={value}\n" for key, value in settings.items())
            (self.folder / "etc" / name).write_text("".join(lines))
        if self._settings:
            (self.folder / "etc" / "catalog" / "ice.properties").write_text(self._settings)
        (self.folder / "etc" / "log.properties").write_text("io.trino=WARN\n")

    def _ready(self) -> bool:
        try:
            self.sql("select 1")
        except (OSError, AssertionError):
            return False
        return True

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows of a statement in Trino's JSON; an AssertionError carries what it says against it."""
        deadline = time.monotonic() + _NODE_SECONDS
        while True:
            try:
                return self._answer(statement)
            except AssertionError as error:  # just after the start, it may not have found itself yet
                if "No nodes available" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def _answer(self, statement: str) -> list[list[Any]]:
        headers = {"X-Trino-User": "tests", "X-Trino-Time-Zone": "UTC", "X-Trino-Catalog": "ice"}
        headers["X-Trino-Client-Capabilities"] = "PARAMETRIC_DATETIME"  # without it times lose their microseconds
        address = f"http://127.0.0.1:{self.port}/v1/statement"
        request = urllib.request.Request(address, statement.encode(), headers)
        rows: list[list[Any]] = []
        while True:
            with urllib.request.urlopen(request, timeout=120) as response:
                answer = json.load(response)
            assert "error" not in answer, f"{statement}\n{answer['error'].get('message')}"
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return rows
            request = urllib.request.Request(answer["nextUri"], headers=headers)


def as_json(rows: Sequence[Sequence[Any]], kinds: Sequence[IcebergType]) -> list[str]:
    """Rows in the form of `tests.support.peer_rows`."""
    return sorted(json.dumps([_value(*pair) for pair in zip(row, kinds, strict=True)]) for row in rows)


def _value(value: Any, kind: IcebergType) -> Any:
    if value is None:
        return None
    if isinstance(kind, (BinaryType, FixedType)):
        return base64.b64decode(value).hex()
    if isinstance(kind, (TimeType, TimestampType, TimestamptzType)):
        text = value.removesuffix(" UTC").replace(" ", "T")
        return text.removesuffix(".000000")
    if isinstance(kind, (FloatType, DoubleType)):
        return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(value, value)
    if isinstance(kind, DecimalType):
        return str(value)
    if isinstance(kind, ListType):
        return [_value(item, kind.element_type) for item in value]
    if isinstance(kind, MapType):
        keys = [int(key) if isinstance(kind.key_type, LongType) else key for key in value]
        return [[key, _value(item, kind.value_type)] for key, item in zip(keys, value.values(), strict=True)]
    if isinstance(kind, StructType):
        return [_value(item, field.field_type) for item, field in zip(value, kind.fields, strict=True)]
    return value
