"""Places as a storage knows them: links, nameservices, mounts, accounts; and the cost of asking for many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.storage import known_places
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.spec.places import Place
from hms_iceberg.storage import Places
from tests.support.memory_storage import InMemoryStorage

HA = {
    "fs.defaultFS": "hdfs://Team",
    "dfs.ha.namenodes.Team": "a,b",
    "dfs.namenode.rpc-address.Team.a": "one:8020",
    "dfs.namenode.rpc-address.Team.b": "two:9000",
    "fs.viewfs.mounttable.all.link./data": "hdfs://Team/lake",
    "fs.viewfs.mounttable.all.link./deep/er": "hdfs://other/deep",
    "fs.viewfs.mounttable.all.linkFallback": "hdfs://Team/",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, and links to both."""
    real = tmp_path / "real" / "in"
    real.mkdir(parents=True)
    (real / "x").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (real / "file-link").symlink_to(real / "x")
    (real / "folder-link").symlink_to("../../real")
    (tmp_path / "gone-link").symlink_to(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    return tmp_path


@pytest.mark.parametrize(
    "spelling",
    [
        "{}/real/in/x",
        "file:{}/real/in/x",
        "file://{}/link/in//x",
        "{}/link/in/file-link",
        "{}/link/in/folder-link/in/x",
        "{}/nowhere/../link/./in/x",
        "{}/link/in/folder-link/in/folder-link/in/file-link",
    ],
)
def test_local_links_are_followed(folder: Path, spelling: str) -> None:
    places = Places(ArrowStorage())
    expected = Place("file", "", os.path.realpath(folder / "real/in/x"))
    assert [places.of(spelling.format(folder)) for _ in range(2)] == [expected, expected]


def test_the_place_of_a_link_is_where_it_leads_though_its_folder_is_known(folder: Path) -> None:
    places = Places(ArrowStorage())
    assert places.of(f"{folder}/real/in/x").path == f"{folder}/real/in/x"
    assert places.of(f"{folder}/real/in/file-link").path == f"{folder}/real/in/x"
    assert places.of(f"{folder}/link").path == f"{folder}/real"
    assert places.of(f"{folder}/gone-link/x").path == f"{folder}/gone/x"
    assert places.of(f"{folder}/new/file").path == f"{folder}/new/file"
    assert places.of(f"{folder}/loop/x") == places.of(f"file:{folder}/./loop/x")


def test_a_relative_path_is_in_the_working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "link" / "in")
    places = Places(ArrowStorage())
    assert {places.of(each).path for each in ("x", "./x", "../in/x", "file:x")} == {f"{folder}/real/in/x"}
    assert places.of(".").path == f"{folder}/real/in"


def test_two_dots_take_a_link_away_when_files_are_read_too(folder: Path) -> None:
    # The operating system would go to the folder above the link's target.
    location = f"{folder}/real/in/folder-link/../x"
    assert parse_location(location).path == f"{folder}/real/in/x"
    assert ArrowStorage().read(location) == b"x"
    assert Places(ArrowStorage()).of(location).path == f"{folder}/real/in/x"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:/a/../b/./c/", "/b/c/"),
        ("//a//b", "/a/b"),
        ("/", "/"),
        ("hdfs://nn/a/./b//c", "/a/b/c"),
        ("s3://b/a/./c/../d", "b/a/d"),
        ("s3://b/a//d/./e", "b/a//d/./e"),
        ("/a/.b/c", "/a/.b/c"),
    ],
)
def test_storage_opens_what_the_place_says(location: str, path: str) -> None:
    assert parse_location(location).path == path


def test_a_text_that_is_damaged_is_a_place_of_its_own(folder: Path) -> None:
    places = Places(ArrowStorage())
    assert places.of(f"{folder}/a\0b") == Place("file", "", f"{folder}/a\0b")
    assert places.of(f"{folder}/a\0b/c") == Place("file", "", f"{folder}/a\0b/c")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("hdfs://Team/a/x", Place("hdfs", "team", "/a/x")),
        ("hdfs://two:9000/a/x", Place("hdfs", "team", "/a/x")),
        ("hdfs://one/./a/x", Place("hdfs", "team", "/a/x")),
        ("hdfs:///a/x", Place("hdfs", "team", "/a/x")),
        ("/a/x", Place("hdfs", "team", "/a/x")),
        ("file:/a/x", Place("file", "", "/a/x")),
        ("hdfs://three/a/x", Place("hdfs", "three", "/a/x")),
        ("viewfs://all/data/a/x", Place("hdfs", "team", "/lake/a/x")),
        ("viewfs://all/data", Place("hdfs", "team", "/lake")),
        ("viewfs://all/deep/er", Place("hdfs", "other", "/deep")),
        ("viewfs://all/deep/else", Place("hdfs", "team", "/deep/else")),
    ],
)
def test_names_of_one_cluster_are_one_place(location: str, expected: Place) -> None:
    places = Places(ArrowStorage(HA))
    assert [places.of(location), places.of(location)] == [expected, expected]


def test_a_cluster_that_nothing_tells_of_is_a_place_by_its_text() -> None:
    assert Places(ArrowStorage()).of("hdfs:///a").path == "/a"


def test_the_account_of_the_properties_is_the_only_one() -> None:
    one = "abfss://c@a.dfs.core.windows.net/x"
    assert Places(ArrowStorage({"adls.account-name": "a"})).of(one) == Place("abfs", "c", "/x")
    assert Places(ArrowStorage()).of(one) == Place.of(one)


def test_a_storage_that_knows_no_links_is_asked_by_text() -> None:
    assert Places(InMemoryStorage()).of("s3a://b/./k") == Place("s3", "b", "/k")
    assert Places(None).anywhere("s3a://b/./k") == Place("", "", "/b/k")


def test_links_are_followed_once_for_all_files_below_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    realpath = os.path.realpath

    def counted(path: str, *more: Any) -> str:
        asked.append(path)
        return realpath(path, *more)

    monkeypatch.setattr(known_places.os.path, "realpath", counted)
    places = Places(ArrowStorage())
    found = {places.of(f"{folder}/link/in/{number % 50}/{number}") for number in range(1000)}
    assert len(found) == 1000
    assert asked == ["/" + str(folder).split("/")[1], f"{folder}/link"]
