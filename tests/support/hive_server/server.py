"""A Hive Metastore of another release in a process of its own, on Derby and loopback, that ends with its owner."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from hms_iceberg.hms.embedded.jars import find_metastore_jars
from hms_iceberg.hms.embedded.server import answers
from tests.support.hive_server.releases import Release
from tests.support.started_server import StartedServer

_LAUNCHER = Path(__file__).with_name("ServerLauncher.java")
LOCK_TABLES = Path(__file__).with_name("lock_tables_of_hive_4.sql")
_LOG4J = """\
status = ERROR
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p [%t] %c{2}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""
_START_SECONDS = 300.0  # a quiet machine needs five


class HiveServer(StartedServer):
    """The metastore of one release, as a context manager.

    Args:
        release: which one.
        folder: an empty folder for its database, warehouse and log.
        properties: further settings; they win.
        java_options: further options of Java.
        more_jars: further jars, such as of a database's driver.
        lock_tables: the SQL of the tables of locks of Hive 4, in the words of its database.
    """

    def __init__(
        self,
        release: Release,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        java_options: tuple[str, ...] = (),
        more_jars: tuple[Path, ...] = (),
        lock_tables: Path = LOCK_TABLES,
    ) -> None:
        super().__init__(folder)
        self.release = release
        self._properties = dict(properties or {})
        self._java_options = java_options
        self._more_jars = more_jars
        self._lock_tables = lock_tables

    @property
    def uri(self) -> str:
        """What a catalog connects to."""
        return f"thrift://localhost:{self.port}"

    @property
    def warehouse(self) -> str:
        """URI of the warehouse."""
        return f"file:{self.folder / 'warehouse'}"

    def __enter__(self) -> HiveServer:
        """Starts it and waits until it listens.

        Raises:
            UnavailableError: its jars cannot be had.
        """
        jars = self.release.jars()
        (self.folder / "conf").mkdir(parents=True)
        (self.folder / "warehouse").mkdir()
        for name in ("core-site.xml", "metastore-site.xml"):  # Hadoop reads its own settings from the first only
            (self.folder / "conf" / name).write_text(self._site())
        (self.folder / "conf" / "log4j2.properties").write_text(_LOG4J)
        compiler = [jar for jar in find_metastore_jars() if jar.name.startswith(("janino-", "commons-compiler-"))]
        class_path = os.pathsep.join(
            map(str, [self.folder / "conf", *sorted(jars.glob("*.jar")), *self._more_jars, *compiler])
        )
        opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("net", "lang", "util", "nio")]
        command = [
            *(str(self.release.java()), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened),
            *(f"-Dderby.stream.error.file={self.folder / 'derby.log'}", *self._java_options),
            *("-cp", class_path, "org.codehaus.janino.SimpleCompiler", str(_LAUNCHER), "ServerLauncher"),
            *(str(self.port), str(self._lock_tables)),
        ]
        self.start(command, lambda: answers("127.0.0.1", self.port), _START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self.folder / "derby", ignore_errors=True)

    @property
    def settings(self) -> dict[str, str]:
        """What its configuration says."""
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder / 'derby'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "HikariCP",
            "metastore.schema.verification": "false",
            "metastore.warehouse.dir": self.warehouse,
            "metastore.thrift.bind.host": "127.0.0.1",
            "metastore.thrift.uris": "",
            "metastore.event.db.notification.api.auth": "false",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            # Hive 4.1 opens its database anew for its housekeeping, while the first calls are under way and then fail.
            "metastore.housekeeping.leader.election": "host",
            "metastore.housekeeping.leader.hostname": "another.invalid",
            **dict(self.release.settings),
            **self._properties,
        }

    def _site(self) -> str:
        rows = "".join(
            f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
            for name, value in self.settings.items()
        )
        return f"<configuration>{rows}</configuration>"
