"""What is wrong before Spark starts is said in a sentence, and Spark is not started."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_iceberg.cli.main import main
from hms_iceberg.errors import JavaNotFoundError
from hms_iceberg.spark import compiler, configure, session
from tests.support.pyspark_home import spark_release

pyspark = pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(pyspark.SparkContext, "_ensure_initialized", lambda *_, **__: pytest.fail("Spark was started"))


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def java(folder: Path, version: str) -> str:
    (folder / "bin").mkdir()
    (folder / "bin" / "java").touch(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return str(folder)


@pytest.mark.parametrize("make", ["getOrCreate", "create"])
def test_a_session_without_java_or_on_an_old_one_is_refused_as_the_doctor_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: str
) -> None:
    builder = configure(pyspark.sql.SparkSession.builder)
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, "1.7.0_80" if spark_release() < (4, 0) else "1.8.0_292"))
    with pytest.raises(JavaNotFoundError, match=r"Spark \d\S+ needs Java \d+ or newer, and \S+ is Java \d\. Install"):
        getattr(builder, make)()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaNotFoundError, match=r"Spark \d\S+ needs Java, and there is no `java` on PATH"):
        getattr(builder, make)()


def test_the_bridge_is_compiled_meanwhile_with_the_java_that_spark_starts_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, "17.0.9"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "installation_folder", lambda: tmp_path / "environment")
    compiling = list[Path]()
    monkeypatch.setattr(compiler, "_compile_in", compiling.append)
    with session._starting({"spark.remote": "sc://elsewhere"}):
        pass
    assert not compiling
    with session._starting({}):  # as the test above says, before either way of building a session
        pass
    assert compiling == [tmp_path / "bin" / "java"]


@pytest.mark.parametrize("server", ["thriftserver", "connect"])
def test_a_taken_port_is_looked_at_first(taken_port: int, server: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([server, "--uri", "thrift://127.0.0.1:1", "--port", str(taken_port)]) == 1
    [said] = capfd.readouterr().err.splitlines()
    assert said == (
        f"Error: Cannot listen at 127.0.0.1:{taken_port}: Address already in use. Give another --host or --port."
    )
    assert main([server, "--uri", "thrift://127.0.0.1:1", "--host", "192.0.2.1"]) == 1
    assert "Cannot assign requested address" in capfd.readouterr().err
