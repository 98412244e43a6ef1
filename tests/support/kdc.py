"""A Kerberos key distribution centre on loopback, out of the programs of MIT Kerberos (`apt install krb5-kdc`)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.support.ports import free_port
from tests.support.started_server import ends_with_owner

REALM = "TEST.LOCAL"

_KRB5 = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
_KDC = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 1h
  }}
"""


class Kdc:
    """The centre of one realm, as a context manager.

    Args:
        folder: an empty folder for its database.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def missing_program() -> str | None:
        """The first of its programs that this machine lacks."""
        return next((name for name in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit") if _find(name) is None), None)

    @property
    def krb5_conf(self) -> Path:
        """What clients and servers are configured with (`KRB5_CONFIG`)."""
        return self.folder / "krb5.conf"

    @property
    def java_options(self) -> tuple[str, ...]:
        """What a Java of this realm is started with."""
        opened = "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
        return f"-Djava.security.krb5.conf={self.krb5_conf}", opened

    @property
    def environment(self) -> dict[str, str]:
        """Variables for programs of this realm."""
        return {"KRB5_CONFIG": str(self.krb5_conf), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def __enter__(self) -> Kdc:
        port = free_port()
        self.krb5_conf.write_text(_KRB5.format(realm=REALM, port=port))
        (self.folder / "kdc.conf").write_text(_KDC.format(realm=REALM, port=port, folder=self.folder))
        (self.folder / "acl").write_text("")
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of-this-test")
        command = ends_with_owner(str(_find("krb5kdc")), "-n", "-r", REALM)
        with open(self.folder / "kdc.log", "wb") as log:
            self._process = subprocess.Popen(command, env=self._full_environment(), stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError((self.folder / "kdc.log").read_text()) from None
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def keytab(self, principal: str, longest: str = "1h") -> Path:
        """A keytab with the key of a new principal, whose tickets are valid for so long at most."""
        path = self.folder / f"{principal.replace('/', '_')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey -maxlife {longest} {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} -norandkey {principal}")
        assert path.exists(), principal
        return path

    def password(self, principal: str, password: str) -> None:
        """Adds a principal who logs in by a password."""
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -pw {password} {principal}")

    def ticket(self, principal: str, keytab: Path, cache: Path, lifetime: str = "1h") -> None:
        """Has a file of tickets hold one that is valid for so long, as kinit does."""
        self._run("kinit", "-k", "-t", str(keytab), "-c", str(cache), "-l", lifetime, principal)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_find(program)), *arguments]
        subprocess.run(command, env=self._full_environment(), check=True, capture_output=True, timeout=60)

    def _full_environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
