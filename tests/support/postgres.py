"""A PostgreSQL on loopback, from the programs that a package of it installs."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.maven import UnavailableError
from tests.support.ports import free_port

_SECONDS = 60.0


@contextmanager
def postgres(database: str, owner: str) -> Iterator[int]:
    """The port of a server with an empty database; whoever comes from this machine is let in.

    Raises:
        UnavailableError: its programs are not installed.
    """
    programs = [_program(name) for name in ("initdb", "postgres")]
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="hms_iceberg-postgres-", dir="/tmp"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = str(folder / "data")
    port = free_port()
    initdb, server = programs
    made = f'CREATE DATABASE {database} OWNER {owner}\nCREATE ROLE "{getpass.getuser()}" SUPERUSER LOGIN\n'
    own = {"user": user, "cwd": folder}
    try:
        subprocess.run(
            [initdb, "-D", data, "-U", owner, "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync"],
            check=True,
            capture_output=True,
            **own,  # type: ignore[call-overload]
        )
        single = [server, "--single", "-D", data, "postgres"]
        subprocess.run(single, input=made.encode(), check=True, capture_output=True, **own)  # type: ignore[call-overload]
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
        process = subprocess.Popen(
            [server, "-D", data, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **own,  # type: ignore[call-overload]
        )
        try:
            _wait(port)
            yield port
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    found = [Path(each) for each in (shutil.which(name),) if each]
    found += sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        raise UnavailableError(f"there is no {name} of PostgreSQL (apt install postgresql)")
    return str(found[0])


def _user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise UnavailableError("PostgreSQL does not run as root, and there is no other user")


def _wait(port: int) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > deadline:
            raise AssertionError("PostgreSQL does not answer")
        time.sleep(0.1)
