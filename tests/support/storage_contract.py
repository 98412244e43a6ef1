"""The contract of a storage, for every store that Arrow reaches."""

from __future__ import annotations

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import FileAlreadyExistsError, MissingFileError


class StorageContract:
    """Subclasses give the fixture `place`: a storage, and a folder in it that is empty."""

    def test_what_was_created_is_read_back_and_measured(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place
        location = f"{root}/data/a.bin"
        storage.create(location, b"0123456789")
        assert storage.read(location) == b"0123456789"
        assert storage.length(location) == 10
        assert storage.exists(location)
        assert not storage.exists(f"{root}/data")
        with storage.open_input(location) as file:
            file.seek(4)
            assert file.read(3) == b"456"
            assert file.tell() == 7

    def test_a_file_is_never_replaced(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place
        location = f"{root}/data/a.bin"
        storage.create(location, b"first")
        with pytest.raises(FileAlreadyExistsError, match="a file is there already"):
            storage.create(location, b"second")
        assert storage.read(location) == b"first"

    def test_a_failed_write_leaves_nothing(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place

        def write_half() -> None:
            with storage.open_output(f"{root}/data/a.bin") as output:
                output.write(b"half")
                raise RuntimeError("the writer failed")

        with pytest.raises(RuntimeError, match="the writer failed"):
            write_half()
        assert list(storage.list(root)) == []

    def test_a_missing_file_names_itself(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place
        location = f"{root}/data/none.bin"
        for call in (storage.read, storage.open_input, storage.length):
            with pytest.raises(MissingFileError, match=r"none\.bin"):
                call(location)
        assert not storage.exists(location)

    def test_deleting_an_absent_file_is_no_error(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place
        location = f"{root}/data/a.bin"
        storage.create(location, b"x")
        storage.delete(location)
        storage.delete(location)
        assert not storage.exists(location)

    def test_a_listing_is_recursive_and_keeps_the_form_of_its_prefix(self, place: tuple[ArrowStorage, str]) -> None:
        storage, root = place
        for name in ("a.bin", "data/b.bin", "data/x=1%2F2/c d.bin"):
            storage.create(f"{root}/{name}", name.encode())
        for prefix in (root, f"{root}/"):
            found = {info.location: info.size for info in storage.list(prefix)}
            assert found == {f"{root}/a.bin": 5, f"{root}/data/b.bin": 10, f"{root}/data/x=1%2F2/c d.bin": 20}
        assert all(info.modified_ms > 1_600_000_000_000 for info in storage.list(root))
        assert list(storage.list(f"{root}/nowhere")) == []
