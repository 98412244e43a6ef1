"""Places by their text: spellings of one place are equal, and what is not in a folder is told apart."""

from __future__ import annotations

import posixpath
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.spec.places import Place, folded, has_dot_segments

SPELLINGS = [
    ("file", "", "/a/b", ["/a/b", "file:/a/b", "file:///a/b", "FILE:/a/b", "File://localhost/a/b", "//a/b", "/a//b"]),
    ("file", "", "/a/b", ["/a/b/", "/a/./b", "/a/c/../b", "/./a/b/.", "/a/b/c/..", "/../a/b", "file:/a/../a/b"]),
    ("file", "", "/a/%20b", ["/a/%20b", "file:/a/./%20b"]),
    ("file", "", "/a/%2E%2E/b", ["/a/%2E%2E/b"]),
    ("file", "", "/a/...", ["/a/..."]),
    ("file", "", "/a/.b", ["/a/.b", "/a//.b/"]),
    ("file", "", "/a/x:y", ["/a/x:y"]),
    ("file", "", "", ["/", "file:/", "file:///", "/..", "//"]),
    ("file", "", "a/b", ["a/b", "./a/b", "file:a/./b"]),
    ("file", "", "../a", ["../a", "x/../../a"]),
    ("file", "", ".", [".", "./", "a/.."]),
    ("s3", "b", "/k/x", ["s3://b/k/x", "s3a://b/k/x", "S3N://b//k/x", "s3://b/k/./x", "s3:/b/k/x", "oss://b/k/x"]),
    ("s3", "b", "", ["s3://b", "s3a://b/", "s3://b/.."]),
    ("s3", "B", "/K", ["s3://B/K"]),
    ("gs", "b", "/k", ["gs://b/k", "gcs://b/k", "GS://b/x/../k/"]),
    (
        "abfs",
        "c@a.dfs.core.windows.net",
        "/k",
        [
            "abfs://c@a.dfs.core.windows.net/k",
            "abfss://C@A.dfs.core.windows.net//k",
            "wasb://c@a.blob.core.windows.net/k",
        ],
    ),
    ("hdfs", "nn", "/k", ["hdfs://nn/k", "HDFS://NN:8020/k", "hdfs://me@nn/./k"]),
    ("hdfs", "nn:9000", "/k", ["hdfs://nn:9000/k"]),
    ("hdfs", "", "/k", ["hdfs:///k", "hdfs:/k"]),
    ("viewfs", "cluster", "/k", ["viewfs://cluster/k"]),
]


@pytest.mark.parametrize(("family", "authority", "path", "spellings"), SPELLINGS)
def test_spellings_of_one_place_are_equal(family: str, authority: str, path: str, spellings: list[str]) -> None:
    for spelling in spellings:
        assert Place.of(spelling) == Place(family, authority, path), spelling


def test_other_places_are_not_equal() -> None:
    places = [Place.of(spellings[0]) for _, _, _, spellings in SPELLINGS]
    places += [Place.of(each) for each in ("s3://c/k/x", "s3://b/K/x", "gs://b/k/x", "hdfs://nn2/k", "/a/b c", "/A/b")]
    assert len(set(places)) == len(places) - 1  # two rows of the table are one place


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "%20", ".c", "..."]), max_size=8))
def test_absolute_paths_are_folded_as_posix_says(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    assert folded(path) == "/" + posixpath.normpath(path).lstrip("/") if folded(path) else posixpath.normpath(path)
    assert folded(folded(path)) == folded(path)


@pytest.mark.parametrize(
    ("location", "folder", "is_in"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a/", True),
        ("/ab", "/a", False),
        ("/a/../ab", "/a", False),
        ("/x/../a/b", "file:/a", True),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("s3a://b/k", "s3://b", True),
        ("s3://bb/k", "s3://b", False),
        ("s3://b/k", "gs://b", False),
        ("hdfs://nn/a", "hdfs://mm/a", False),
    ],
)
def test_a_place_is_in_a_folder(location: str, folder: str, is_in: bool) -> None:
    assert Place.of(location).is_in(Place.of(folder)) is is_in
    assert Place.of(folder).contains(Place.of(location)) is is_in


def test_a_place_tells_its_folders_and_the_way_from_them() -> None:
    place = Place.of("s3://b/x/y/z.parquet")
    assert [each.path for each in place.upwards()] == ["/x/y/z.parquet", "/x/y", "/x", ""]
    assert place.parent.child("z.parquet") == place
    assert place.name == "z.parquet"
    assert place.below(Place.of("s3://b/x")) == "y/z.parquet"
    assert place.below(Place.of("s3://b")) == "x/y/z.parquet"
    assert str(place) == "s3://b/x/y/z.parquet"


@pytest.mark.parametrize(
    ("one", "other", "may_be_one"),
    [
        ("hdfs://nn/a", "hdfs://10.0.0.1:9000/a", True),
        ("hdfs://nn/a", "/a", True),
        ("s3://b/a", "gs://b/a", True),
        ("s3://B/a", "s3://b/a", True),
        ("abfs://c@one.dfs.core.windows.net/a", "abfs://c/a", True),
        ("s3://b/a", "s3://c/a", False),
        ("hdfs://nn/a", "hdfs://nn/b", False),
    ],
)
def test_two_places_that_may_be_one_are_equal_anywhere(one: str, other: str, may_be_one: bool) -> None:
    assert (Place.of(one).anywhere() == Place.of(other).anywhere()) is may_be_one


def test_dot_segments_are_told_from_names_with_dots() -> None:
    assert all(map(has_dot_segments, ("..", "./a", "/a/..", "s3://b/./k", "/a/../b")))
    assert not any(map(has_dot_segments, ("/a/.b", "/a/b..", "/a/...", "s3://b/k", "", "/a.b/c", "/%2E%2E/a")))


def test_a_text_that_is_longer_never_leads_out_of_the_root() -> None:
    draw = random.Random(7)
    for _ in range(200):
        path = "/" + "/".join(draw.choice(["..", ".", "", "a"]) for _ in range(6))
        assert ".." not in Place.of(path).path
