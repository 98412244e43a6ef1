"""A signal ends the server, however early it comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVE = """
import signal, sys
import uvicorn
from uvicorn.supervisors import Multiprocess
from hms_iceberg.rest.server import ServerSettings, serve
from tests.support.rest_server import free_port

def signalled(owner, name):
    real = getattr(owner, name)
    def early(self, *args, **named):
        signal.raise_signal(signal.SIGTERM)
        return real(self, *args, **named)
    setattr(owner, name, early)

def ended(*_):  # as the command has it
    raise SystemExit(143)

owners = {"Config": uvicorn.Config, "Server": uvicorn.Server, "Multiprocess": Multiprocess}
signalled(owners[sys.argv[1]], sys.argv[2])
signal.signal(signal.SIGTERM, ended)
if __name__ == "__main__":
    catalog = {"type": "hadoop", "warehouse": sys.argv[4]}
    serve(ServerSettings("x", catalog, port=free_port(), workers=int(sys.argv[3])))
    assert signal.getsignal(signal.SIGTERM) is ended
"""


@pytest.mark.parametrize(
    ("owner", "method", "workers", "code"),
    [
        ("Config", "__init__", "1", 143),
        ("Server", "run", "1", 0),
        ("Multiprocess", "__init__", "2", 143),
        ("Multiprocess", "run", "2", 0),
    ],
)
def test_a_signal_before_the_server_runs_ends_it(
    tmp_path: Path, owner: str, method: str, workers: str, code: int
) -> None:
    (script := tmp_path / "serve.py").write_text(SERVE)
    words = [sys.executable, str(script), owner, method, workers, str(tmp_path)]
    root = Path(__file__).parents[3]
    ran = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(root)}, timeout=60, check=False)
    assert ran.returncode == code
