"""A directory server on loopback: OpenLDAP (`apt install slapd`)."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from hms_iceberg.hms.embedded.server import answers
from tests.support.ports import free_port
from tests.support.started_server import ends_with_owner

_CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
database mdb
suffix "dc=test"
rootdn "cn=admin,dc=test"
directory {folder}/data
"""
_PEOPLE = "ou=people,dc=test"
_TREE = f"""\
dn: dc=test
objectClass: domain
dc: test

dn: {_PEOPLE}
objectClass: organizationalUnit
ou: people
"""
_START_SECONDS = 60.0


class Directory:
    """A directory of people with passwords, as a context manager.

    Args:
        folder: an empty folder for its database.
        people: passwords by names.
    """

    def __init__(self, folder: Path, people: Mapping[str, str]) -> None:
        self.folder = folder
        self._people = dict(people)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @staticmethod
    def program() -> str | None:
        """The server, if this machine has one."""
        return shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/bin")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def pattern(self) -> str:
        """The name of an entry, with `%s` for that of the person."""
        return f"uid=%s,{_PEOPLE}"

    def __enter__(self) -> Directory:
        program = self.program()
        assert program is not None
        (self.folder / "data").mkdir()
        configuration = self.folder / "slapd.conf"
        configuration.write_text(_CONFIGURATION.format(folder=self.folder))
        entries = "\n".join(
            f"dn: {self.pattern % name}\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name}\nsn: {name}\n"
            f"userPassword: {password}\n"
            for name, password in self._people.items()
        )
        load = [program, "-T", "add", "-f", str(configuration)]
        subprocess.run(load, input=f"{_TREE}\n{entries}".encode(), check=True, capture_output=True, timeout=60)
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                ends_with_owner(program, "-f", str(configuration), "-h", self.url, "-d", "0"), stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_SECONDS
        while not answers("127.0.0.1", self.port):
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
