"""Configuration of catalogs from files, variables and arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.config import catalog_properties, default_catalog_name, known_catalogs
from hms_iceberg.errors import ConfigurationError

FILE = """
default-catalog: prod
catalog:
  prod:
    type: hive
    uri: thrift://one:9083
    s3.endpoint: http://minio:9000
    s3:
      region: eu-1
    hive:
      hive2-compatible: on
  Test:
    uri: thrift://two:9083
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty folders for `$PYICEBERG_HOME`, the home directory and the working directory."""
    found = {name: tmp_path / name for name in ("configured", "home", "here")}
    for folder in found.values():
        folder.mkdir()
    monkeypatch.setenv("PYICEBERG_HOME", str(found["configured"]))
    monkeypatch.setenv("HOME", str(found["home"]))
    monkeypatch.chdir(found["here"])
    return found


@pytest.fixture
def file(folders: dict[str, Path]) -> Path:
    path = folders["home"] / ".pyiceberg.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_catalog_is_configured_in_the_file(file: Path) -> None:
    assert catalog_properties("prod", {}) == {
        "type": "hive",
        "uri": "thrift://one:9083",
        "s3.endpoint": "http://minio:9000",
        "s3.region": "eu-1",
        "hive.hive2-compatible": "on",
    }
    assert (default_catalog_name(), known_catalogs()) == ("prod", ["prod", "test"])


def test_names_of_catalogs_do_not_differ_by_case(file: Path) -> None:
    assert catalog_properties("TEST", {})["uri"] == "thrift://two:9083"


def test_variables_go_before_the_file_and_arguments_before_both(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", "thrift://three:9083")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID", "key")
    found = catalog_properties("prod", {"type": None, "s3.endpoint": "http://other", "s3.path-style-access": True})
    assert found["uri"] == "thrift://three:9083"
    assert found["type"] == "hive"
    assert (found["s3.endpoint"], found["s3.access-key-id"]) == ("http://other", "key")
    assert found["s3.path-style-access"] == "true"


def test_variables_alone_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", "thrift://four:9083")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "default")
    assert catalog_properties(default_catalog_name(), {}) == {"uri": "thrift://four:9083"}


@pytest.mark.parametrize("places", [("configured", "home", "here"), ("home", "here"), ("here",)])
def test_the_first_file_found_counts(folders: dict[str, Path], places: tuple[str, ...]) -> None:
    for place in places:
        (folders[place] / ".pyiceberg.yaml").write_text(f"catalog:\n  c:\n    uri: thrift://{place}:1\n")
    assert catalog_properties("c", {})["uri"] == f"thrift://{places[0]}:1"


def test_without_configuration_there_is_nothing() -> None:
    assert (catalog_properties("any", {"uri": "x"}), default_catalog_name(), known_catalogs()) == (
        {"uri": "x"},
        "default",
        [],
    )


def test_folders_that_are_gone_or_out_of_reach_hold_no_configuration(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders["here"].rmdir()
    monkeypatch.setenv("HOME", "/" + "x" * 300)  # a stat of which fails for every user
    assert catalog_properties("any", {"uri": "x"}) == {"uri": "x"}


@pytest.mark.parametrize("content", ["catalog: [", "- a\n- b\n", "catalog: text\n", "catalog:\n  c: text\n"])
def test_a_file_that_cannot_be_read_is_named(file: Path, content: str) -> None:
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"\.pyiceberg\.yaml|'c'"):
        catalog_properties("c", {})


def test_an_empty_file_is_no_configuration(file: Path) -> None:
    file.write_text("", encoding="utf-8")
    assert catalog_properties("c", {}) == {}


def test_a_variable_that_contradicts_the_file_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG__X", "y")
    with pytest.raises(ConfigurationError, match="PYICEBERG_DEFAULT_CATALOG__X"):
        catalog_properties("prod", {})


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, "PYICEBERG_CATALOG__NEW__URI"),
        ({"uri": "jdbc:sqlite:x"}, "type"),
        ({"uri": "thrift://a:1", "type": "glue"}, "'glue'"),
        ({"uri": "thrift://a:1", "type": "rest"}, "http://host:8181"),
        ({"type": "hive"}, "thrift://host:9083"),
    ],
)
def test_a_catalog_that_cannot_be_made_says_what_to_set(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_catalog("new", **properties)
