"""A process that migrates tables and dies in the middle, as often as it is asked to.

It reads lines of JSON: the metastore's URI, the table, the command and after how many changes (of the metastore or of
a file) to die; for a whole warehouse also how many jobs, and where the plan is kept. For each it forks a child, so that
Python and its libraries are loaded once; the answer is the child's exit code: 0 for a finished command, 9 for a death.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEAD = 9
Crash = Callable[..., int]
"""Runs a command on a table and dies after so many changes; returns the exit code."""
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def crashing(uri: str) -> Iterator[Crash]:
    """Runs a command on a table of a metastore in a process that dies after so many changes.

    What is run returns the exit code: 0 or `DEAD`, and 1 if `refused` says that an error may be told.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "support" / "crash_server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as server:

        def run(command: str, table: str, changes: int, refused: bool = False, **more: Any) -> int:
            assert server.stdin is not None and server.stdout is not None
            job = {"uri": uri, "table": table, "command": command, "changes": changes, **more}
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            assert code in (0, DEAD, *((1,) if refused else ()))
            return code

        yield run
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


class Fuse:
    """Ends the process, as a kill would, once so many changes were made."""

    def __init__(self, changes: int) -> None:
        self.left = changes

    def burn(self) -> None:
        """Counts one change."""
        self.left -= 1
        if self.left < 0:
            os._exit(DEAD)


def install(fuse: Fuse) -> None:
    """Counts what changes the metastore or a file, just after it was done."""
    from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage, LocalOutput, RenamedOutput
    from hms_iceberg.hms.connection.connection import Connection
    from hms_iceberg.hms.connection.pool import ConnectionPool, SentRequests

    def counted(owner: Any, name: str, counts: Any = lambda arguments, named: True) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            if counts(arguments, named):
                fuse.burn()
            return result

        setattr(owner, name, call)

    # `unlock` may be repeated, and is a change all the same.
    counted(ConnectionPool, "call", lambda args, named: not named["repeatable"] or args[1] == "unlock")
    _count_sent(fuse, ConnectionPool, SentRequests, Connection)
    counted(ArrowStorage, "delete")
    counted(LocalOutput, "_publish")
    counted(RenamedOutput, "_publish")


def _count_sent(fuse: Fuse, pool: Any, sent: Any, connection: Any) -> None:
    """Counts requests that are sent one behind the other, such as a pair of renames: when they left, and at each
    answer."""
    real_send, real_replies, send, receive = pool.send, sent.replies, connection.send, connection.receive

    def counted(call: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            result = call(*arguments)
            fuse.burn()
            return result

        return counting

    def counted_send(*arguments: Any) -> Any:
        connection.send = counted(send)
        try:
            return real_send(*arguments)
        finally:
            connection.send = send

    def counted_replies(*arguments: Any) -> Any:
        connection.receive = counted(receive)
        try:
            return real_replies(*arguments)
        finally:
            connection.receive = receive

    pool.send, sent.replies = counted_send, counted_replies


def run(job: dict[str, Any]) -> None:
    """One command, to its end or its death."""
    from hms_iceberg.catalog import load_catalog
    from hms_iceberg.migration import Follower, add_hive_files, migrate, rollback, snapshot
    from hms_iceberg.migration.rewrite import rewrite
    from tests.support.fixed_rows import FixedRows

    catalog = load_catalog("crash", uri=job["uri"])
    install(Fuse(job["changes"]))
    if job["command"] == "migrate":
        migrate(catalog, job["table"])
    elif job["command"] == "rewrite":
        rewrite(catalog, job["table"], rows=FixedRows(catalog))
    elif job["command"] == "warehouse":
        _migrate_warehouse(catalog, job)
    elif job["command"] == "snapshot":
        snapshot(catalog, job["table"], f"{job['table']}_copy")
    elif job["command"] == "follow":
        Follower(catalog, job["table"], f"{job['table']}_copy").round()
    elif job["command"] == "add_files":
        add_hive_files(catalog, f"{job['table']}_copy", job["table"])
    else:
        choices = {"as_hive": job["command"] == "as_hive", "discard_changes": job["command"] == "discard"}
        rollback(catalog, job["table"], **choices)


def _migrate_warehouse(catalog: Any, job: dict[str, Any]) -> None:
    """By the plan that is kept, or by a new one."""
    from hms_iceberg.migration import migrate_warehouse, plan_warehouse
    from hms_iceberg.migration.rewrite import rewrite
    from hms_iceberg.migration.undo import recovery
    from hms_iceberg.migration.warehouse.warehouse_plan import WarehousePlan
    from tests.support.fixed_rows import FixedRows

    recovery.SETTLED_SECONDS = 0.6
    kept = Path(job["plan"]) if job["plan"] else None
    old = kept is not None and kept.exists()
    plan = WarehousePlan.read(kept) if kept and old else plan_warehouse(catalog, [job["table"]])
    done = migrate_warehouse(
        catalog,
        plan,
        jobs=job["jobs"],
        kept_in=kept,
        rewrite=lambda catalog, name, options: rewrite(catalog, name, options, rows=FixedRows(catalog)),
    )
    failed = [each for each in done.tables if not each.is_done]
    assert not failed, failed


def main() -> None:
    """Serves jobs until the input ends."""
    import tests.support.fixed_rows  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                run(job)
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
