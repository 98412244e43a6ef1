"""An embedded metastore that outlives the command which started it: start, status and stop by its data folder."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hms_iceberg.errors import MetastoreError
from hms_iceberg.hms.embedded.server import LOOPBACK, EmbeddedMetastore, answers
from hms_iceberg.processes import exists

logger = logging.getLogger(__name__)

_PID_FILE = "metastore.pid"


@dataclass(frozen=True)
class MetastoreStatus:
    """A detached metastore, by its pid file and its process."""

    data_dir: str  # folder of its database, configuration and log
    running: bool = False  # whether its process lives
    answering: bool = False  # whether it accepts connections
    pid: int = 0  # id of its process; 0 if there is none
    uri: str = ""  # `thrift://host:port`, empty if it was never started
    warehouse: str = ""  # URI of its warehouse
    started_at: float = 0.0  # seconds since the epoch


def default_data_dir() -> Path:
    """The folder that the command line uses: `hms_iceberg/metastore` in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "hms_iceberg" / "metastore"


def start(
    data_dir: str | os.PathLike[str] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    port: int = 0,
    host: str = LOOPBACK,
    properties: Mapping[str, str] | None = None,
) -> MetastoreStatus:
    """Starts a metastore that runs until `stop`, unless one runs on this folder (by default `default_data_dir()`)
    already, on a free port by default; it has no passwords, and so listens on loopback by default."""
    folder = Path(data_dir or default_data_dir()).absolute()
    current = status(folder)
    if current.running:
        return current
    with EmbeddedMetastore(folder, warehouse, port, host=host, properties=properties) as server:
        assert server.pid is not None
        started = MetastoreStatus(str(folder), True, True, server.pid, server.uri, server.warehouse, time.time())
        record = {**asdict(started), "host": host, "port": server.port}
        unfinished = folder / f"{_PID_FILE}.new"
        unfinished.write_text(json.dumps(record, indent=2))
        unfinished.replace(folder / _PID_FILE)
        server.release()  # it would have ended with this process until here
    return started


def status(data_dir: str | os.PathLike[str] | None = None) -> MetastoreStatus:
    """The state of the metastore on a data folder; `running` is False if there is none."""
    folder = Path(data_dir or default_data_dir()).absolute()
    try:
        record = json.loads((folder / _PID_FILE).read_text())
        pid, uri, warehouse = int(record["pid"]), str(record["uri"]), str(record["warehouse"])
        host, port, started_at = str(record["host"]), int(record["port"]), float(record["started_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return MetastoreStatus(str(folder))
    is_one = _is_metastore(pid)
    answering = is_one is not False and answers(host, port)
    running = answering if is_one is None else is_one
    return MetastoreStatus(str(folder), running, answering, pid if running else 0, uri, warehouse, started_at)


def stop(data_dir: str | os.PathLike[str] | None = None, timeout: float = 15.0) -> bool:
    """Stops the metastore on a data folder, and waits `timeout` seconds for its end; returns whether one was
    running."""
    current = status(data_dir)
    pid_file = Path(current.data_dir) / _PID_FILE
    if current.running:
        try:
            os.kill(current.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise MetastoreError(
                f"The metastore on {current.data_dir} (process {current.pid}) belongs to another user. Stop it as that "
                "user."
            ) from error
        deadline = time.monotonic() + timeout
        while _is_metastore(current.pid):
            if time.monotonic() > deadline:
                raise MetastoreError(
                    f"The metastore on {current.data_dir} (process {current.pid}) did not end within {timeout:.0f} s. "
                    f"Try again, or end it with `kill -9 {current.pid}`."
                )
            time.sleep(0.05)
    pid_file.unlink(missing_ok=True)
    return current.running


def _is_metastore(pid: int) -> bool | None:
    """Whether the process lives and is a metastore of ours: a pid may have been given to another program since. None if
    that cannot be found out, as the process of another user may be hidden."""
    if pid <= 0 or not exists(pid):
        return False
    if Path("/proc/self/cmdline").exists():
        try:
            # Empty if it ended, and its parent has not asked for it yet.
            return b"MetastoreLauncher" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return None
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "MetastoreLauncher" in shown.stdout
