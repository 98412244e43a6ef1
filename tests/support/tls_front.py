"""A TLS server before a metastore that lets in only who shows a certificate, as a TLS proxy of a company does."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from pathlib import Path
from types import TracebackType


class Certificates:
    """An authority of this test's own, and what it vouches for, as PEM files.

    Raises:
        FileNotFoundError: there is no `openssl`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca = folder / "ca.pem"
        self._openssl("req", "-x509", *self._new_key("ca"), "-subj", "/CN=authority of a test", "-out", str(self.ca))

    def of(self, name: str) -> tuple[Path, Path]:
        """Certificate and key of `name`, which is a host or a client."""
        request, certificate, extension = (self._folder / f"{name}.{kind}" for kind in ("csr", "pem", "ext"))
        extension.write_text(f"subjectAltName=DNS:{name}\n")
        self._openssl("req", *self._new_key(name), "-subj", f"/CN={name}", "-out", str(request))
        signed = ["-CA", str(self.ca), "-CAkey", str(self._folder / "ca.key"), "-CAcreateserial", "-days", "2"]
        files = ["-in", str(request), "-out", str(certificate), "-extfile", str(extension)]
        self._openssl("x509", "-req", *files, *signed)
        return certificate, self._folder / f"{name}.key"

    def _new_key(self, name: str) -> list[str]:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        return [*curve, "-nodes", "-keyout", str(self._folder / f"{name}.key")]

    @staticmethod
    def _openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class TlsFront:
    """Listens on a port of its own and passes on what comes over TLS, as a context manager.

    Args:
        target: port of the metastore.
        server: certificate and key of the front.
        clients: who vouches for clients.
    """

    def __init__(self, target: int, server: tuple[Path, Path], clients: Path) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*server)
        self._context.load_verify_locations(clients)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://localhost:{self._listener.getsockname()[1]}"

    def __enter__(self) -> TlsFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with plain:
            try:
                client = self._context.wrap_socket(plain, server_side=True)
            except (ssl.SSLError, OSError):
                return
            with client, socket.create_connection(("127.0.0.1", self._target)) as server:
                back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
                back.start()
                _pass_on(client, server)
                back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
