"""A signal ends the server, however early it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SERVE = """
import signal, sys
import uvicorn
from uvicorn.supervisors import Multiprocess
from hms_iceberg.rest.server import ServerSettings, serve

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
    serve(ServerSettings("x", catalog, port=0, workers=int(sys.argv[3])))
    assert signal.getsignal(signal.SIGTERM) is ended
"""


WORKERS = """
import sys
from hms_iceberg.rest.server import ServerSettings, serve

class Told(ServerSettings):
    def __call__(self):
        application = super().__call__()
        print("a worker", flush=True)
        return application

if __name__ == "__main__":
    serve(Told("x", {"type": "hadoop", "warehouse": sys.argv[1]}, port=0, workers=2))
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


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
    ran = subprocess.run(words, env=ENVIRONMENT, timeout=120, check=False)
    assert ran.returncode == code


def test_workers_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    (script := tmp_path / "serve.py").write_text(WORKERS)
    words = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout is not None
        assert [server.stdout.readline() for _ in range(2)] == [b"a worker\n"] * 2
        server.kill()
        try:
            assert server.communicate(timeout=60) == (b"", None)  # nobody has its output open any more
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise
