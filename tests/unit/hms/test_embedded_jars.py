"""Java and the jars are looked for before anything is started, and their absence is a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.errors import JavaNotFoundError, MissingDependencyError
from hms_iceberg.hms.embedded import jars


def java_home(folder: Path, release: str | None, script: str = "exit 1") -> Path:
    """A folder that looks like a Java installation."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


def test_no_java_anywhere_is_an_error_that_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JavaNotFoundError, match="Install Java 17 or newer"):
        jars.find_java()


def test_a_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME is .*gone"):
        jars.find_java()


@pytest.mark.parametrize(
    ("release", "script", "version"),
    [
        ('JAVA_VERSION="11.0.2"\n', "exit 1", 11),
        ('JAVA_VERSION="1.8.0_292"\n', "exit 1", 8),
        (None, "echo 'openjdk version \"1.8.0_292\"' >&2", 8),
        (None, "echo 'openjdk version \"16\" 2021-03-16' >&2", 16),
    ],
)
def test_an_old_java_is_refused_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str | None, script: str, version: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "java", release, script)))
    with pytest.raises(JavaNotFoundError, match=rf"needs Java 17 or newer, and .* is Java {version}\."):
        jars.find_java()


def test_a_new_java_is_taken_without_being_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", 'JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert jars.find_java() == home / "bin" / "java"


def test_a_java_that_says_nothing_is_refused(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", None, "exit 1")
    with pytest.raises(JavaNotFoundError, match="names no version"):
        jars.java_version(home / "bin" / "java")


def test_a_missing_pyspark_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'hms_iceberg\[spark\]'"):
        jars.find_metastore_jars()


def test_a_spark_home_serves_where_pyspark_has_no_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("hive-metastore-2.3.10.jar", "derby-10.16.1.1.jar", "spark-core_2.13-4.0.0.jar"):
        (folder / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    assert [jar.name for jar in jars.find_metastore_jars()] == ["derby-10.16.1.1.jar", "hive-metastore-2.3.10.jar"]
