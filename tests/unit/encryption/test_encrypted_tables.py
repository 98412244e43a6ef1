"""Encrypted tables in folders: every change of rows, every format, damage of every file, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.encryption.encrypted_tables import check_integrity, metadata_hash
from hms_iceberg.errors import (
    ConfigurationError,
    InvalidInputError,
    KeyUnavailableError,
    TamperedFileError,
    UnsupportedError,
)
from hms_iceberg.maintenance.check.consistency import check_table
from hms_iceberg.maintenance.repair import plan_repair
from hms_iceberg.metastore import TablePointer
from hms_iceberg.migration.migrate import migrate
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.spec.data_types import DoubleType, NestedField, VariantType
from hms_iceberg.spec.metadata.metadata_json import compress, metadata_to_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.transaction.workspace import read_current

ENCRYPTED = {"format-version": "3", "encryption.key-id": "one"}


@pytest.fixture
def catalog(tmp_path: Path, keystore: str) -> Catalog:
    settings = {"encryption.kms-type": "keystore", "kms.keystore.path": keystore}
    made = load_catalog("keyed", type="hadoop", warehouse=str(tmp_path / "warehouse"), **settings)
    made.create_namespace("db")
    return made


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    texts = pa.array([None if n % 3 == 0 else f"secret {n}" for n in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "text": texts})


def files(table: Table, *endings: str) -> list[Path]:
    folder = Path(table.location().removeprefix("file:"))
    return sorted(each for each in folder.rglob("*.*") if each.name.endswith(endings) and not each.name.startswith("."))


def found(table: Table) -> list[dict[str, Any]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_every_file_but_the_metadata_is_encrypted(catalog: Catalog, file_format: str, mode: str) -> None:
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    chosen = {**ENCRYPTED, **modes, "write.format.default": file_format, "commit.manifest-merge.enabled": "true"}
    chosen |= {"commit.manifest.min-count-to-merge": "2"}
    encrypted = catalog.create_table("db.e", rows(0, 0).schema, properties=chosen)
    del chosen["encryption.key-id"]
    plain = catalog.create_table("db.p", rows(0, 0).schema, properties=chosen)
    for table in (encrypted, plain):
        table.append(rows(0, 400))
        table.append(rows(400, 500))
        table.delete("id in (1, 3, 450)")
        table.update({"text": "altered"}, "id between 100 and 120")
        table.upsert(rows(490, 510), join_cols=["id"])
        table.overwrite(rows(1000, 1010), "id < 50")
    assert found(encrypted) == found(plain)
    assert not check_table(encrypted, record_counts=True, values=True).findings
    for table in (encrypted, plain):
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
        table.maintenance.rewrite_manifests()
        table.maintenance.expire_snapshots().older_than(datetime.now()).retain_last(1).commit()
    assert found(encrypted) == found(plain)
    assert encrypted.inspect.files().num_rows == plain.inspect.files().num_rows
    assert {each.read_bytes()[:4] for each in files(encrypted, "parquet", "avro", "puffin")} <= {b"PARE", b"AGS1"}
    for each in files(encrypted, ""):
        content = each.read_bytes()
        assert b"secret" not in content and b"altered" not in content, each
    assert not check_table(encrypted, record_counts=True, values=True).findings


def test_every_changed_file_is_told_and_none_is_read(catalog: Catalog) -> None:
    modes = {"write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", rows(0, 0).schema, properties={**ENCRYPTED, **modes})
    table.append(rows(0, 50))
    table.delete("id = 7")
    expected = found(table)
    other = catalog.create_table("db.other", rows(0, 0).schema, properties=ENCRYPTED)
    other.append(rows(0, 50))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    used = {str(snapshot.manifest_list), *(each.manifest_path for each in snapshot.manifests(table.io))}
    used |= set(table.inspect.files()["file_path"].to_pylist())
    for name in used:
        path = Path(name)
        content = path.read_bytes()
        is_list = path.name.startswith("snap-")
        alike = [each for each in files(other, path.suffix) if each.name.startswith("snap-") == is_list]
        middle = 100 if path.suffix == ".parquet" else len(content) // 2  # pyarrow passes over page indexes
        for changed in (
            content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            content[:-1],
            *(each.read_bytes() for each in alike[:1]),
        ):
            path.write_bytes(changed)
            cache_of(None).clear()
            with pytest.raises(TamperedFileError):
                catalog.load_table("db.t").scan().to_arrow()
            assert check_table(catalog.load_table("db.t"), record_counts=True, values=True).findings
        path.write_bytes(content)
    assert found(catalog.load_table("db.t")) == expected


def test_the_manifest_list_of_an_older_snapshot_is_told(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    table.append(rows(0, 1))
    table.append(rows(1, 2))
    old, new = (Path(str(each.manifest_list)) for each in table.metadata.snapshots)
    new.write_bytes(old.read_bytes())
    with pytest.raises(TamperedFileError, match="Cannot decrypt"):
        catalog.load_table("db.t").scan().to_arrow()


def test_the_keys_of_lists_that_expire_go_with_them(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    for start in range(5):
        table.append(rows(start, start + 1))
    assert len(table.metadata.encryption_keys) == 6
    table.maintenance.expire_snapshots().older_than(datetime.now()).retain_last(2).commit()
    assert len(table.metadata.encryption_keys) == 3
    table.append(rows(5, 6))
    assert (len(table.metadata.encryption_keys), len(found(table))) == (4, 6)


def test_a_new_key_takes_the_place_of_the_one_above_all_lists(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    for start in range(3):
        table.append(rows(start, start + 1))
    before = {key.key_id: key for key in table.metadata.encryption_keys}
    written = [each for each in files(table, "") if "metadata.json" not in each.name]
    settings = [f"--property={name}={value}" for name, value in {"type": "hadoop", **catalog.properties}.items()]
    assert main([*settings, "rotate-keys", "db.t"]) == 0
    table.refresh()
    after = {key.key_id: key for key in table.metadata.encryption_keys}
    [old] = before.keys() - after.keys()
    [new] = after.keys() - before.keys()
    assert {key.encrypted_by_id for key in after.values()} == {"one", new}
    assert not {key.encrypted_key_metadata for key in after.values()} & {
        key.encrypted_key_metadata for key in before.values()
    }
    assert [each for each in files(table, "") if "metadata.json" not in each.name] == written
    for loaded in (table, catalog.load_table("db.t")):
        cache_of(None).clear()
        assert [loaded.scan(snapshot_id=each.snapshot_id).count() for each in loaded.snapshots()] == [1, 2, 3]
    table.append(rows(3, 4))
    assert [key.encrypted_by_id for key in table.metadata.encryption_keys].count(new) == 4
    assert old not in {key.key_id for key in table.metadata.encryption_keys}
    plain = catalog.create_table("db.plain", rows(0, 0).schema)
    with pytest.raises(InvalidInputError, match="it is not encrypted"):
        plain.maintenance.rotate_keys()


def refusals(table: Table, catalog: Catalog, tmp_path: Path) -> dict[str, Callable[[], object]]:
    plain = catalog.create_table("db.plain", rows(0, 0).schema, properties={"format-version": "3"})
    plain.append(rows(0, 5))
    [file] = files(plain, ".parquet")
    [task] = table.scan().plan_files()
    pointer = TablePointer(("db", "t"), table.metadata_location, {"encryption.key-id": "one"})
    return {
        "the table is encrypted, and the file is not": lambda: table.add_files([str(file)]),
        "the table is not encrypted, and the file is": lambda: plain.new_append().append_file(task.file).commit(),
        "Cannot change encryption.key-id": lambda: table.set_properties({"encryption.key-id": "two"}),
        "Cannot change encryption.data-key-length": lambda: table.set_properties({"encryption.data-key-length": "32"}),
        "from None to 'one'": lambda: plain.set_properties({"encryption.key-id": "one"}),
        "ORC files cannot be encrypted": lambda: table.set_properties({"write.format.default": "orc"}),
        "Cannot compute statistics": table.maintenance.compute_table_stats,
        "Cannot rewrite the paths": lambda: table.maintenance.rewrite_table_path(str(tmp_path), str(tmp_path / "x")),
        "Cannot repair": lambda: plan_repair(pointer, table.storage),
    }


def test_what_would_leave_plain_files_or_change_the_key_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    table.append(rows(0, 5))
    asked = refusals(table, catalog, tmp_path)
    before = files(table, "")
    for told, ask in asked.items():
        with pytest.raises((InvalidInputError, UnsupportedError), match=told):
            ask()
    assert files(table, "") == before
    assert found(catalog.load_table("db.t")) == found(table)


@pytest.mark.parametrize(
    ("properties", "error", "told"),
    [
        ({"format-version": "2"}, InvalidInputError, "needs format-version 3"),
        ({"encryption.key-id": ""}, InvalidInputError, "is empty"),
        ({"encryption.data-key-length": "17"}, ConfigurationError, "16, 24, 32"),
        ({"write.format.default": "orc"}, UnsupportedError, "ORC files cannot be encrypted"),
        ({"write.delete.format.default": "orc"}, UnsupportedError, "ORC files cannot be encrypted"),
    ],
)
def test_a_table_that_cannot_be_encrypted_is_not_created(
    catalog: Catalog, properties: dict[str, str], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        catalog.create_table("db.t", rows(0, 0).schema, properties={**ENCRYPTED, **properties})
    assert not catalog.table_exists("db.t")


def test_variants_are_not_written_to_encrypted_tables(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", Schema(NestedField(1, "v", VariantType())), properties=ENCRYPTED)
    from hms_iceberg.variant import variant_column, variant_of

    with pytest.raises(UnsupportedError, match="cannot be encrypted here"):
        table.append(pa.table({"v": variant_column([variant_of(1)])}))


def test_without_its_key_a_table_is_neither_read_nor_changed(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED).append(rows(0, 3))
    catalog.create_table("db.unknown", rows(0, 0).schema, properties={**ENCRYPTED, "encryption.key-id": "absent"})
    plain = load_catalog("plain", type="hadoop", warehouse=str(tmp_path / "warehouse"))
    for ask in (lambda table: table.scan().to_arrow(), lambda table: table.append(rows(3, 4))):
        with pytest.raises(KeyUnavailableError, match="catalog has no key service"):
            ask(plain.load_table("db.t"))
    with pytest.raises(KeyUnavailableError, match="no key 'absent'"):
        catalog.load_table("db.unknown").append(rows(0, 1))
    assert catalog.load_table("db.t").scan().count() == 3


def test_keys_are_not_shown(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    table.append(rows(0, 3))
    [task] = table.scan().plan_files()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert task.file.key_metadata is not None
    shown = f"{task} {task.file!r} {snapshot!r} {snapshot.manifests(table.io)!r}"
    assert "key_metadata" not in shown and repr(task.file.key_metadata) not in shown


def test_the_hash_of_metadata_is_that_of_its_json_as_java_writes_it(catalog: Catalog) -> None:
    default = {"initial_default": 1e10, "write_default": 0.25}
    schema = Schema(NestedField(1, "d", DoubleType(), **default), NestedField(2, 'a "b" 1.5', DoubleType()))
    table = catalog.create_table("db.t", schema, properties={**ENCRYPTED, "n": 'x\x1b\\u00ab 1.5e3 "q"'})
    metadata = table.metadata
    text = metadata_to_json(metadata).decode().replace("10000000000.0", "1.0E10").replace("\\u001b", "\\u001B")
    assert "1.0E10" in text and "\\u001B\\\\u00ab 1.5e3" in text
    expected = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert metadata_hash(metadata) == expected
    row = {"encryption.key-id": "one", "metadata_hash": expected}
    spaced = json.dumps(json.loads(text), indent=2).encode()
    for data in (text.encode(), compress(text.encode()), spaced):
        check_integrity(row, data, metadata, "m")
    moved = replace(metadata, last_updated_ms=metadata.last_updated_ms + 1)
    without = replace(metadata, properties={})
    for changed, of_row in [
        (moved, row),
        (without, row),
        (without, {"encryption.key-id": "one"}),
        (metadata, {**row, "encryption.key-id": "two"}),
        (metadata, {**row, "encryption.data-key-length": "32"}),
    ]:
        with pytest.raises(TamperedFileError, match="not the one that was committed"):
            check_integrity(of_row, metadata_to_json(changed), changed, "m")
    check_integrity({}, b"", metadata, "m")
    pointer = TablePointer(("db", "t"), table.metadata_location, row)
    assert read_current(pointer, table.io).metadata == metadata
    with pytest.raises(TamperedFileError, match="not the one that was committed"):
        read_current(replace(pointer, properties={**row, "metadata_hash": "another"}), table.io)


def test_several_writers_each_add_the_key_of_their_list(catalog: Catalog) -> None:
    catalog.create_table("db.t", rows(0, 0).schema, properties=ENCRYPTED)
    first, second = catalog.load_table("db.t"), catalog.load_table("db.t")
    first.append(rows(0, 1))
    second.append(rows(1, 2))
    first.delete("id = 0")
    second.append(rows(2, 3))
    table = catalog.load_table("db.t")
    assert [each["id"] for each in found(table)] == [1, 2]
    assert len(table.metadata.encryption_keys) == 1 + len(table.metadata.snapshots) == 5
    with catalog.replace_table_transaction("db.t", rows(0, 0).schema) as transaction:
        transaction.append(rows(9, 10))
    assert [each["id"] for each in found(catalog.load_table("db.t"))] == [9]


def test_a_hive_table_is_not_encrypted_in_place(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedError, match="migrate with --rewrite"):
        migrate(catalog, "db.hive", MigrationOptions(properties=ENCRYPTED))
