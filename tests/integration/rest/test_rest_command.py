"""`hms-iceberg rest` as it is run: several processes, TLS, tokens, metrics, and an orderly end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import urllib3

from hms_iceberg.catalog import load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import MetastoreAuthenticationError
from tests.support.ports import free_port
from tests.support.tls_front import Certificates

TOKEN = "a-token-that-nobody-guesses"


@pytest.mark.slow
def test_the_command_serves_with_tls_and_tokens_tells_metrics_and_ends_at_sigterm(
    metastore: Any, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    chain, key = certificates.of("localhost")
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(f"tokens:\n  - name: alice\n    token: {TOKEN}\n")
    port, metrics = free_port(), free_port()
    words = ["--uri", metastore.uri, "--port", str(port), "--workers", "2", "--metrics-port", str(metrics)]
    secure = ["--tls-certificate", str(chain), "--tls-key", str(key), "--tokens", str(tokens)]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hms_iceberg", "rest", *words, *secure],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    url = f"https://localhost:{port}"
    pool = urllib3.PoolManager(retries=False, ca_certs=str(certificates.ca))
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if pool.request("GET", f"{url}/health", timeout=5).status == 200:
                    break
            except urllib3.exceptions.HTTPError:
                assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
                time.sleep(0.2)
        properties = {"ssl.cabundle": str(certificates.ca)}
        with load_catalog("door", uri=url, token=TOKEN, **properties) as catalog:
            assert ("default",) in catalog.list_namespaces()
        with pytest.raises(MetastoreAuthenticationError):
            load_catalog("door", uri=url, token="wrong", **properties)
        told = urllib3.request("GET", f"http://127.0.0.1:{metrics}/metrics").data.decode()
        assert 'hms_iceberg_rest_request_seconds_count{method="GET",route="/v1/namespaces",status="200"}' in told
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and said.splitlines()[-1] == "Stopped."
    finally:
        process.kill()
        process.wait()
        pool.clear()
    log_text = (tmp_path / "log").read_text()
    assert "alice GET /v1/namespaces 200" in log_text and TOKEN not in log_text


def test_a_setting_that_the_metastore_cannot_keep_ends_the_command_before_it_listens(
    metastore: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    trusting = ["--uri", metastore.uri, "-p", "iceberg.hive.trust-notifications=true"]
    assert main(["rest", *trusting, "--port", str(free_port())]) == 1
    assert "Use Hive 3 or newer, or leave the property out" in capsys.readouterr().err
