"""OpenBao or HashiCorp Vault itself, on loopback and in memory, where one of them is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.ports import free_port
from tests.support.started_server import ends_with_owner

BINARY = shutil.which("bao") or shutil.which("vault")
_POLICY = "\n".join(f'path "keys/{what}/*" {{ capabilities = ["update"] }}' for what in ("encrypt", "decrypt"))
_START_SECONDS = 60.0


class VaultServer:
    """A running server, with a transit engine at `keys` that has the keys `one` and `two`.

    Args:
        port: where it listens.
    """

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.token = "root"

    def ask(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        """What it answers to its owner."""
        headers = {"X-Vault-Token": "root", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/v1/{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def prepare(self) -> None:
        """Makes the engine and the keys, and a token that may use them, as soon as it listens."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.ask("sys/mounts/keys", {"type": "transit"})
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        for name in ("one", "two"):
            self.ask(f"keys/keys/{name}", {})
        self.ask("sys/policies/acl/user", {"policy": _POLICY}, "PUT")
        self.token = self.ask("auth/token/create", {"policies": ["user"]})["auth"]["client_token"]


@contextmanager
def vault_server() -> Iterator[VaultServer]:
    """Starts and stops one."""
    port = free_port()
    command = [str(BINARY), "server", "-dev", "-dev-root-token-id=root", "-dev-no-store-token"]
    process = subprocess.Popen(
        ends_with_owner(*command, f"-dev-listen-address=127.0.0.1:{port}"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        server = VaultServer(port)
        server.prepare()
        yield server
    finally:
        process.terminate()
        process.wait()
