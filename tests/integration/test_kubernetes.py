"""The containers of `docker/kubernetes` run as their manifests say, and are probed as Kubernetes would."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.manifests import CONFIGURATION, MANIFESTS, container_of, words_of, workloads
from tests.support.ports import free_port

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.slow

REST, SERVICE, NIGHTLY = "rest.yaml", "maintenance-service.yaml", "maintenance-nightly.yaml"
TOKEN = "token of a reader"
# The file system of a container: nothing but one folder can be written.
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"'


@pytest.fixture
def folder(metastore: EmbeddedMetastore, tmp_path: Path) -> Path:
    """The files that are mounted, with the address of the metastore here, and room for temporary ones."""
    for name, text in CONFIGURATION.items():
        (tmp_path / name).write_text(text.replace("thrift://metastore:9083", metastore.uri), encoding="utf-8")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    tokens = f"tokens: [{{name: ann, sha256: {digest}, groups: [readers]}}]\n"
    (tmp_path / "tokens.yaml").write_text(tokens, encoding="utf-8")
    return tmp_path


class Container:
    """A container that runs here, at ports of its own."""

    def __init__(self, manifest: dict[str, Any], folder: Path) -> None:
        self._container = container_of(manifest)
        self._ports = {each["name"]: free_port() for each in self._container.get("ports", [])}
        words = [self._here(word, folder) for word in words_of(self._container)[1:]]
        self.command = [sys.executable, "-m", "hms_iceberg", *words]
        self.environment = {**os.environ, "HOME": "/", "PYICEBERG_HOME": str(folder), "TMPDIR": str(folder)}
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def _here(self, word: str, folder: Path) -> str:
        for mount in ("/etc/hms-iceberg", "/etc/hms-iceberg-tokens"):
            word = word.replace(f"={mount}/", f"={folder}/")
        for each in self._container.get("ports", []):
            word = word.replace(f"={each['containerPort']}", f"={self._ports[each['name']]}")
        return word

    @contextmanager
    def running(self) -> Iterator[Container]:
        """Until SIGTERM ends it, well."""
        with subprocess.Popen(self.command, env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            self.process = process
            try:
                yield self
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)
                assert process.returncode == 0
            finally:
                process.kill()

    def is_well(self, probe: str) -> bool:
        """What Kubernetes would find by a probe."""
        asked = self._container[probe]
        if "tcpSocket" in asked:
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", self._ports[asked["tcpSocket"]["port"]])) == 0
        try:
            return self.status(asked["httpGet"]["port"], asked["httpGet"]["path"]) == 200
        except OSError:
            return False

    def wait(self, probe: str) -> None:
        end = time.monotonic() + 60
        while not self.is_well(probe):
            assert time.monotonic() < end and self.process.poll() is None, f"{probe} finds it unwell"
            time.sleep(0.1)

    def status(self, port: str, path: str, token: str | None = None) -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self._ports[port]}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


def test_the_rest_server_is_ready_and_asks_for_a_login(catalog: Catalog, namespace: str, folder: Path) -> None:
    catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    with Container(MANIFESTS[REST][0], folder).running() as container:
        container.wait("readinessProbe")
        assert container.is_well("livenessProbe")
        assert container.status("metrics", "/metrics") == 200
        table = f"/v1/namespaces/{namespace}/tables/t"
        assert [container.status("http", table, token) for token in (None, "another", TOKEN)] == [401, 401, 200]


def test_the_service_is_ready_after_its_first_run(catalog: Catalog, namespace: str, folder: Path) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    for number in range(10):
        table.append(pa.table({"id": [number]}))
    with Container(MANIFESTS[SERVICE][0], folder).running() as container:
        container.wait("livenessProbe")
        container.wait("readinessProbe")
        assert container.status("metrics", "/metrics") == 200
    assert len(list(table.refresh().scan().plan_files())) == 1


def test_the_nightly_run_needs_no_file_system_but_its_temporary_folder(
    catalog: Catalog, namespace: str, folder: Path
) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]), location=f"{folder}/t")
    for number in range(10):
        table.append(pa.table({"id": [number]}))
    container = Container(workloads()[NIGHTLY], folder)
    command = [*read_only(folder), *container.command]

    ran = subprocess.run(command, env=container.environment, capture_output=True, text=True, timeout=120, check=False)

    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (f"{namespace}.t", "done") in {(each["table"], each["outcome"]) for each in events[:-1]}
    assert events[-1]["event"] == "run" and events[-1]["failed"] == 0
    assert table.refresh().scan().count() == 10


def read_only(folder: Path) -> list[str]:
    """What starts a command that can write to one folder only; nothing where that cannot be had."""
    prefix = ["unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY, "sh", str(folder)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        return []
    return prefix
