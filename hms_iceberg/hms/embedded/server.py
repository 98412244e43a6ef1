"""A real Hive Metastore in a process of its own, that ends with its owner."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import selectors
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO
from xml.sax.saxutils import escape

from hms_iceberg.errors import ConfigurationError, MetastoreUnavailableError
from hms_iceberg.hms.embedded.jars import find_java, find_metastore_jars
from hms_iceberg.private_files import cache_folder, temporary_folder

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
    """Where the prepared empty database for these jars is cached; None if there is no writable cache folder. A change
    of the jars or of the launcher makes another template."""
    parts = [jar.name for jar in jars if jar.name.startswith(("hive-metastore-", "derby", "datanucleus"))]
    key = hashlib.sha256("\n".join([*parts, LAUNCHER.read_text()]).encode()).hexdigest()[:16]
    folder = cache_folder()
    template = None if folder is None else folder / f"metastore-{key}"
    if template is not None and template.exists() and template.lstat().st_uid != os.getuid():
        return None
    return template


logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_LITTLE = 1 / 60  # of one processor; an idle Java takes less


class EmbeddedMetastore:
    """Hive Metastore 2.3.10 out of PySpark's jars, on Derby and loopback, as a context manager. It ends with its owner,
    even a killed one, whose pipe it reads; a forked child should close it."""

    def __init__(
        self,
        # of its database, configuration and log; a temporary one, removed by `stop`, by default
        data_dir: str | os.PathLike[str] | None = None,
        warehouse: str | os.PathLike[str] | None = None,  # `<data_dir>/warehouse` by default
        port: int = 0,  # a free one
        *,
        host: str = LOOPBACK,
        # seconds until a server is given up that does not answer and does nothing either; one that works is waited
        # for, however slow the machine is
        start_timeout: float = 60.0,
        lock_expiry_seconds: int = 300,  # so long without a heartbeat, a lock is dropped by the server
        properties: Mapping[str, str] | None = None,  # further settings for its hive-site.xml
        jars: Sequence[str | os.PathLike[str]] = (),  # further ones, such as those of `s3a` for a warehouse there
    ) -> None:
        self._temporary = data_dir is None
        self._data_dir = None if data_dir is None else Path(data_dir).absolute()
        self._warehouse = None if warehouse is None else os.fspath(warehouse)
        self._port = port
        self._host = host
        self._start_timeout = start_timeout
        self._lock_expiry_seconds = lock_expiry_seconds
        self._properties = dict(properties or {})
        self._more_jars = tuple(Path(jar).absolute() for jar in jars)
        self._process: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------------------------------------ what it is

    @property
    def uri(self) -> str:
        """`thrift://host:port`, for a catalog's `uri` and for `hive.metastore.uris`."""
        return f"thrift://{self._host}:{self.port}"

    @property
    def port(self) -> int:
        """The port it listens on, the same when the server is started again; an error before its first start."""
        if not self._port:
            raise ConfigurationError("The embedded metastore has no port yet: call start() first.")
        return self._port

    @property
    def data_dir(self) -> Path:
        """The folder that holds its database, configuration and log."""
        if self._data_dir is None:
            self._data_dir = temporary_folder("metastore")
        return self._data_dir

    @property
    def warehouse(self) -> str:
        """URI of the warehouse, in the form in which Hive writes it (`file:/...`)."""
        if self._warehouse is None:
            return f"file:{self.data_dir / 'warehouse'}"
        if "://" in self._warehouse or self._warehouse.startswith("file:"):
            return self._warehouse.rstrip("/")
        return f"file:{Path(self._warehouse).absolute()}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_running() else None

    @property
    def log(self) -> Path:
        return self.data_dir / "metastore.log"

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # ------------------------------------------------------------------------------------- start and stop

    def __enter__(self) -> EmbeddedMetastore:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the server and returns when it answers; does nothing if it runs already."""
        if self.is_running():
            return
        jars, java = find_metastore_jars(), find_java()
        began = time.monotonic()
        template = template_path(jars)
        from_template = self._prepare_files(jars, template)
        try:
            self._launch(java, "from-template" if from_template else self._database_state(template))
        except _NoSignOfLifeError:
            raise  # which says nothing about its database
        except MetastoreUnavailableError:
            if not from_template or template is None:
                raise
            logger.warning("The prepared database %s cannot be used; making a new one", template)
            shutil.rmtree(template, ignore_errors=True)
            shutil.rmtree(self._database, ignore_errors=True)
            self._launch(java, self._database_state(template))
        logger.info("Hive Metastore at %s after %.1f s", self.uri, time.monotonic() - began)

    def stop(self) -> None:
        """Stops the server and waits for its end; a temporary data folder is removed."""
        process = self._process
        if process is not None and process.poll() is None:
            if process.stdin is not None:
                process.stdin.close()
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._forget()
        if self._temporary and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)

    def kill(self) -> None:
        """Ends the server at once, as a crash would; `start` brings it back with the same data and port."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    def release(self) -> None:
        """Has the server live on when its owner ends (see `hms_iceberg.hms.embedded.detached`)."""
        assert self._process is not None and self._process.stdin is not None
        os.write(self._process.stdin.fileno(), b"\n")
        self._forget()

    # -------------------------------------------------------------------------------------------- details

    @property
    def _database(self) -> Path:
        return self.data_dir / "derby"

    def _database_state(self, template: Path | None) -> str:
        if template is None or template.exists() or self._database.exists():
            return "as-is"
        return str(template)

    def _prepare_files(self, jars: list[Path], template: Path | None) -> bool:
        """Writes the configuration; returns whether the database is a new copy of the template."""
        _make_folder(self.data_dir, "data folder")
        if self.warehouse.startswith("file:"):
            _make_folder(Path(self.warehouse.removeprefix("file:").replace("//", "/")), "warehouse")
        configuration = self.data_dir / "conf"
        site = hive_site(self._database, self.warehouse, self._lock_expiry_seconds, self._properties)
        write_configuration(configuration, self.log, site)
        write_java_arguments(configuration / "java.args", self.data_dir, configuration, [*jars, *self._more_jars])
        if template is None or not template.exists() or self._database.exists():
            return False
        unfinished = self._database.with_name("derby-copy")
        shutil.rmtree(unfinished, ignore_errors=True)
        # A backup of Derby holds the database in a folder of the database's own name.
        shutil.copytree(template / self._database.name, unfinished)
        unfinished.rename(self._database)
        return True

    def _launch(self, java: Path, database_state: str) -> None:
        reaper_seconds = max(1, min(30, self._lock_expiry_seconds // 4))
        command = [
            str(java),
            f"@{self.data_dir / 'conf' / 'java.args'}",
            "org.codehaus.janino.SimpleCompiler",
            str(LAUNCHER),
            "MetastoreLauncher",
            self._host,
            str(self._port),
            str(reaper_seconds),
            database_state,
        ]
        environment = {**os.environ, "HIVE_CONF_DIR": str(self.data_dir / "conf")}
        with open(self.data_dir / "metastore.err", "wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=self.data_dir,
                start_new_session=True,  # Ctrl-C is for the owner, which stops the server when it has cleaned up
            )
        assert self._process.stdout is not None
        line = _read_line(self._process.stdout, self._start_timeout, self._signs_of_life)
        if not line.startswith("READY "):
            raise self._start_failure()
        self._process.stdout.close()
        self._port = int(line.split()[1])

    def _start_failure(self) -> Exception:
        assert self._process is not None
        try:
            code, died = self._process.wait(2.0), True
        except subprocess.TimeoutExpired:
            code, died = 0, False
        self.kill()
        said = (self.data_dir / "metastore.err").read_text(errors="replace")
        if "BindException" in said:
            return ConfigurationError(
                f"The embedded metastore cannot listen on {self._host}:{self._port}: the address is in use or not of "
                "this machine. Choose another port, or 0 for a free one."
            )
        if "Another instance of Derby may have already booted" in said + _tail(self.log, 20_000):
            return ConfigurationError(
                f"Another metastore uses the data folder {self.data_dir}. Stop it, or choose another folder."
            )
        is_fault = died and code >= 0  # not one that somebody ended, such as a system without memory
        if is_fault:
            why = f"it ended with code {code}"
        elif died:
            why = f"signal {-code} ended it"
        else:
            why = f"it did not answer, and did nothing, for {self._start_timeout:.0f} s"
        last = [line for line in said.splitlines() if line.strip()][-5:]
        return (MetastoreUnavailableError if is_fault else _NoSignOfLifeError)(
            f"The embedded metastore could not be started: {why}. Its log is {self.log}; its last words: "
            + (" | ".join(last) or "none")
        )

    def _signs_of_life(self) -> tuple[int, ...]:
        """Sizes of the server's logs, and its processor time in coarse steps (an idle server takes a little), which
        change while it starts."""
        assert self._process is not None
        sizes = [_size(self.log), _size(self.data_dir / "metastore.err")]
        return (*sizes, int(_processor_seconds(self._process.pid) / (self._start_timeout * _LITTLE)))

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if process.returncode is None:
            process.returncode = 0  # a detached server is nobody's child to wait for


class _NoSignOfLifeError(MetastoreUnavailableError):
    """The server did not start, which is no fault of its database."""


def _read_line(pipe: IO[bytes], timeout: float, signs_of_life: Callable[[], tuple[int, ...]]) -> str:
    """The first line of a pipe; shorter if the pipe ends, empty if nothing comes and no sign of life changes."""
    received, signs, silent = b"", signs_of_life(), 0.0
    look = min(timeout, _LOOK_SECONDS)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while b"\n" not in received:
            if not selector.select(look):
                before, signs = signs, signs_of_life()
                silent = silent + look if signs == before else 0.0  # by looks, as a machine may be paused
                if silent >= timeout:
                    break
                continue
            part = os.read(pipe.fileno(), 4096)
            if not part:
                break
            received += part
    return received.decode(errors="replace").strip()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _processor_seconds(pid: int) -> float:
    """The processor time of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _tail(path: Path, length: int) -> str:
    try:
        return path.read_bytes()[-length:].decode(errors="replace")
    except OSError:
        return ""


def answers(host: str, port: int, timeout: float = 1.0) -> bool:
    """Whether a server accepts connections there, within `timeout` seconds."""
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False


def _make_folder(folder: Path, what: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot make the {what} {folder} of the metastore: {error.strerror}. Choose another folder."
        ) from error
    if not writable:
        raise ConfigurationError(f"Cannot write to the {what} {folder} of the metastore. Choose another folder.")
