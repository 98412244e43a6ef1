"""Files that an embedded metastore is started with: hive-site.xml, log4j2.properties and Java's arguments."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from hms_iceberg.private_files import cache_folder

LAUNCHER = Path(__file__).with_name("MetastoreLauncher.java")

_LOG4J = """\
status = ERROR
name = hms-iceberg
appenders = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p [%t] %c{{2}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = INFO
rootLogger.appenderRefs = file
rootLogger.appenderRef.file.ref = file
logger.datanucleus.name = DataNucleus
logger.datanucleus.level = ERROR
"""


def hive_site(database: Path, warehouse: str, lock_expiry_seconds: int, properties: Mapping[str, str]) -> str:
    """The text of hive-site.xml; `properties` win; locks without a heartbeat for `lock_expiry_seconds` are dropped."""
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": warehouse,
        "hive.metastore.schema.verification": "false",
        "hive.metastore.server.min.threads": "4",
        "hive.txn.timeout": f"{lock_expiry_seconds}s",
        # Two seconds by default, for a database that was restarted; here two requests only met on one row.
        "hive.hmshandler.retry.interval": "250ms",
        "hive.async.log.enabled": "false",
        # On, it refuses every drop and reorder of Iceberg's columns; Iceberg in Java then knows no way around.
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        **properties,
    }
    rows = "".join(
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{rows}</configuration>\n"


def write_configuration(folder: Path, log: Path, site: str) -> None:
    """Writes hive-site.xml and the log's settings into a folder, readable by the owner alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("hive-site.xml", site), ("log4j2.properties", _LOG4J.format(log=_property(log)))):
        with open(folder / name, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)


def write_java_arguments(path: Path, data_dir: Path, configuration: Path, jars: Sequence[Path]) -> None:
    """Writes Java's options into an argument file (`java @file`), as the class path is too long to be shown."""
    options = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # a metastore waits for its database: a quick start is worth more than peak speed
        "-Xmx512m",
        f"-Dderby.stream.error.file={data_dir / 'derby.log'}",
        f"-Dlog4j2.configurationFile={configuration / 'log4j2.properties'}",
        "-cp",
        os.pathsep.join(str(jar) for jar in jars),
    ]
    path.write_text("".join(f"{_quoted(option)}\n" for option in options), encoding="utf-8")


def _property(path: Path) -> str:
    """A path as a value of a Java properties file, which is Latin-1 with the escapes of a Java string."""
    return json.dumps(str(path))[1:-1]


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def template_path(jars: Sequence[Path]) -> Path | None:
    """Where the prepared empty database for these jars is cached; None if there is no writable cache folder.

    A change of the jars or of the launcher makes another template.
    """
    parts = [jar.name for jar in jars if jar.name.startswith(("hive-metastore-", "derby", "datanucleus"))]
    key = hashlib.sha256("\n".join([*parts, LAUNCHER.read_text()]).encode()).hexdigest()[:16]
    folder = cache_folder()
    template = None if folder is None else folder / f"metastore-{key}"
    if template is not None and template.exists() and template.lstat().st_uid != os.getuid():
        return None
    return template
