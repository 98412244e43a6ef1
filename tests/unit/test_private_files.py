"""What another user of the machine could have put there is not used."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.rows.row_order import RowSorter
from hms_iceberg.arrow.writing.external_sort import sorted_parts
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.private_files import (
    cache_folder,
    is_of_installation,
    is_own,
    own_folder,
    shared_folder,
    temporary_folder,
)
from hms_iceberg.spark.bridge_server import BridgeServer
from hms_iceberg.spark.bridge_service import BridgeService
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED

NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = own_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_could_enter_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o775)
    assert stat.S_IMODE(own_folder(tmp_path / "a").stat().st_mode) == 0o700


@as_root
def test_the_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o777)
    os.chown(tmp_path / "a", NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="another user"):
        own_folder(tmp_path / "a")
    with pytest.raises(PermissionError, match="changed by other users"):
        own_folder(tmp_path / "a" / "b")


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "to")
    with pytest.raises(PermissionError, match="link"):
        own_folder(tmp_path / "a")


def test_a_folder_whose_place_everybody_can_take_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="changed by other users"):
        own_folder(tmp_path / "open" / "a")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is: each user's entries stay their own
    own_folder(tmp_path / "open" / "a")


@as_root
def test_a_folder_whose_place_a_group_can_take_is_refused_but_not_that_of_ones_own_group(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team").chmod(0o775)
    own_folder(tmp_path / "team" / "a")  # of the group that has the user's name, and nobody else in it
    os.chown(tmp_path / "team", -1, NOBODY)
    with pytest.raises(PermissionError, match="team can be changed by other users"):
        own_folder(tmp_path / "team" / "a")
    (tmp_path / "team").chmod(0o1775)
    own_folder(tmp_path / "team" / "a")


def test_a_temporary_folder_is_new_and_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    folder = temporary_folder("sort")
    assert folder.parent == tmp_path / "real" and folder.name.startswith("hms_iceberg-sort-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert temporary_folder("sort") != folder


@pytest.mark.parametrize(
    "use",
    [
        temporary_folder,
        lambda: BridgeServer(BridgeService()),
        lambda: EmbeddedMetastore().data_dir,
        lambda: sorted_parts([], pa.schema([]), RowSorter(Schema(), UNSORTED), 1).__enter__(),
    ],
    ids=["folder", "socket of the bridge", "embedded metastore", "sort"],
)
def test_temporary_files_are_not_put_where_others_can_replace_them(
    use: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "open"))
    with pytest.raises(ConfigurationError, match=r"open can be changed by other users. Set TMPDIR"):
        use()
    assert not list((tmp_path / "open").iterdir())


def test_a_file_is_own_if_it_is_plain_and_nobody_else_writes_to_it(tmp_path: Path) -> None:
    (file := tmp_path / "a.jar").write_bytes(b"")
    file.chmod(0o644)
    assert is_own(file)
    file.chmod(0o664)
    assert not is_own(file)
    file.chmod(0o600)
    (link := tmp_path / "b.jar").symlink_to(file)
    assert not is_own(link)
    assert not is_own(tmp_path / "c.jar")


@as_root
def test_the_file_of_another_user_is_not_own(tmp_path: Path) -> None:
    (file := tmp_path / "a.jar").write_bytes(b"")
    os.chown(file, NOBODY, NOBODY)
    assert not is_own(file)


@pytest.mark.parametrize("base", ["~/.cache", "relative", "/proc/nowhere"])
def test_a_user_without_a_home_has_no_cache(base: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert cache_folder() is None
    assert list(tmp_path.iterdir()) == []


def test_lock_files_are_in_a_folder_of_this_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert stat.S_IMODE(shared_folder().stat().st_mode) == 0o700


def test_a_file_is_of_the_installation_if_no_stranger_can_put_another_in_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "share"
    folder.mkdir(mode=0o755)
    file = folder / "a.jar"
    assert not is_of_installation(file)
    file.write_bytes(b"")
    file.chmod(0o644)
    assert is_of_installation(file)
    assert not is_of_installation(folder)
    file.chmod(0o646)
    assert not is_of_installation(file)
    file.chmod(0o644)
    folder.chmod(0o777)
    assert not is_of_installation(file)
    folder.chmod(0o755)
    (link := folder / "b.jar").symlink_to(file)
    assert is_of_installation(link)
    if os.getuid() == 0:
        os.chown(file, 65534, 65534)
        assert not is_of_installation(file)
        os.chown(file, 0, 0)
        os.chown(folder, 65534, 65534)
        assert not is_of_installation(file)
