"""What a predicate means in files of every age, what is refused, and what a report proves."""

from __future__ import annotations

import base64
import datetime as dt
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hms_iceberg import load_catalog
from hms_iceberg.errors import InvalidInputError, UnknownColumnError, UnsupportedError
from hms_iceberg.maintenance import remove_orphan_files, resume_forget, verify_report
from hms_iceberg.maintenance.erasure.erasure_journal import open_erasures
from hms_iceberg.spec.data_types import LongType, NestedField, StringType, StructType, VariantType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.table import Table
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.variant import variant_column, variant_of, variants_to_python
from tests.support.erasure_histories import left_of
from tests.support.operations import SCHEMA, rows
from tests.support.row_tables import create, ids, live

NOW = dt.timedelta(0)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = create(tmp_path, schema=SCHEMA)
    made.append(rows(1, 2, 3))
    return made


def forgotten(table: Table, where: str) -> list[list[int]]:
    """The ids that each snapshot has after an erasure."""
    table.refresh().forget(where, dry_run=False, after=NOW)
    table.refresh()
    found = [table.scan(snapshot_id=each.snapshot_id).to_arrow()["id"].to_pylist() for each in table.snapshots()]
    return [sorted(each) for each in found]


def test_a_column_that_was_dropped_is_meant_by_its_name(table: Table) -> None:
    with table.update_schema() as schema:
        schema.delete_column("amount")
    assert forgotten(table, "amount = 4") == [[1, 3]]


def test_a_dropped_column_is_meant_beside_the_one_that_has_its_name_now(table: Table) -> None:
    with table.update_schema() as schema:
        schema.delete_column("amount")
    with table.update_schema() as schema:
        schema.add_column("amount", LongType())
    table.append(pa.table({"id": [7, 8], "city": ["Ulm", "Ulm"], "amount": [4, 5]}, table.schema().as_arrow()))
    assert forgotten(table, "amount = 4") == [[1, 3], [1, 3, 8]]


def test_a_name_that_a_column_had_once_does_not_mean_it_beside_another_of_that_name(table: Table) -> None:
    with table.update_schema() as schema:
        schema.rename_column("amount", "total")
    with table.update_schema() as schema:
        schema.add_column("amount", LongType())
    new = {"id": [7, 8], "city": ["Ulm", "Ulm"], "total": [4, 5], "amount": [6, 4]}
    table.append(pa.table(new, table.schema().as_arrow()))
    assert forgotten(table, "amount = 4") == [[1, 2, 3], [1, 2, 3, 7]]
    assert forgotten(table, "total = 4") == [[1, 3], [1, 3]]


def test_files_that_lack_a_column_have_its_default_or_null(tmp_path: Path) -> None:
    table = create(tmp_path, 3, schema=SCHEMA)
    table.append(rows(1, 2))
    with table.update_schema() as schema:
        schema.add_column("color", StringType(), default_value="red").add_column("note", StringType())
    new = {"id": [3, 4], "city": ["Ulm", "Ulm"], "amount": [1, 1], "color": ["blue", "red"], "note": ["a", None]}
    table.append(pa.table(new, table.schema().as_arrow()))
    plan = table.forget("note is null").plan
    assert plan.rows == 3
    assert forgotten(table, "color = 'red'") == [[], [3]]


def test_fields_of_structs_are_tested(tmp_path: Path) -> None:
    who = NestedField(2, "who", StructType(NestedField(3, "mail", StringType())))
    table = create(tmp_path, schema=Schema(NestedField(1, "id", LongType()), who))
    mails = [{"mail": "Zq7Kx93MbTwe"}, None, {"mail": "b"}]
    table.append(pa.table({"id": [1, 2, 3], "who": mails}, table.schema().as_arrow()))
    assert forgotten(table, "who.mail = 'Zq7Kx93MbTwe'") == [[2, 3]]
    assert left_of("Zq7Kx93MbTwe", tmp_path) == []


def test_variants_are_kept_beside_rows_that_go(tmp_path: Path) -> None:
    fields = NestedField(1, "id", LongType()), NestedField(2, "v", VariantType())
    table = create(tmp_path, 3, schema=Schema(*fields))
    values = variant_column([variant_of({"a": number, "b": [None, "x"]}) for number in (1, 2, 3)])
    table.append(pa.table({"id": [1, 2, 3], "v": values}))
    assert forgotten(table, "id = 2") == [[1, 3]]
    found = variants_to_python(table.scan().to_arrow()["v"])
    assert found == [{"a": 1, "b": [None, "x"]}, {"a": 3, "b": [None, "x"]}]


def test_what_fits_no_schema_is_refused(table: Table) -> None:
    with pytest.raises(UnknownColumnError, match="no schema of the table has the column"):
        table.forget("nobody = 1")
    with pytest.raises(InvalidInputError, match="every row matches"):
        table.forget("id is not null")
    with pytest.raises(InvalidInputError, match="at least 16 bytes"):
        table.forget("id = 1", sign_key=b"short")


def test_tables_whose_files_may_be_of_others_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, schema=SCHEMA, **{"gc.enabled": "false"})
    table.append(rows(1, 2))
    with pytest.raises(UnsupportedError, match=r"gc\.enabled is false"):
        table.forget("id = 1", dry_run=False)


def test_statistics_that_lie_hide_no_row(table: Table) -> None:
    (file,) = live(table)
    bound = {1: to_bytes(LongType(), 900)}
    with table.new_overwrite() as change:
        change.delete_file(file)
        change.add_file(replace(file, file_path=copied(file.file_path), lower_bounds=bound, upper_bounds=bound))
    assert table.forget("id = 2").plan.rows == 1  # of the file that an older snapshot has
    assert forgotten(table, "id = 2") == [[1, 3], [1, 3]]


def test_that_nothing_matches_is_proven_and_signed_as_well(table: Table) -> None:
    before = table.metadata_location
    report = table.forget("id = 9", dry_run=False, sign_key=b"0123456789abcdef0123").report
    assert report is not None and verify_report(report, b"0123456789abcdef0123")
    assert [(each["rows"], each["matches"]) for each in report["proof"]["files"]] == [(3, 0)]
    assert table.refresh().metadata_location == before


def copied(location: str) -> str:
    return shutil.copy(location, location.replace(".parquet", "-copy.parquet"))


def test_summaries_lose_what_they_mention_and_properties_are_told_of(tmp_path: Path) -> None:
    name = "Zq7Kx93MbTwe"
    table = create(tmp_path, schema=SCHEMA, note=f"of {name}")
    table.append(rows(1, city=name), snapshot_properties={"who": f"asked for by {name}."})
    table.append(rows(2))
    result = table.forget(f"city = '{name}'", dry_run=False, after=NOW)
    assert result.plan.mentions == ("the property note",)
    assert result.report is not None and result.report["not-proven"]["mentions"] == ["the property note"]
    assert not any(name in str(each.summary) for each in table.refresh().snapshots())
    table.remove_properties("note")
    assert ids(table.refresh()) == [2]


def test_orphan_removal_leaves_the_files_of_before_until_they_are_due(table: Table, tmp_path: Path) -> None:
    waiting = table.forget("id = 2", dry_run=False)
    assert waiting.due is not None and waiting.due > dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=23)
    now = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=1)
    assert not remove_orphan_files(table.refresh(), older_than=now, nobody_writes=True).locations
    result = resume_forget(table, now=True)
    assert result is not None and result.report is not None
    deleted = result.report["deleted"]
    assert deleted and all(facts["sha256"] for facts in deleted.values())
    assert not any(Path(each).exists() for each in deleted)
    assert not open_erasures(table.metadata, table.metadata_location, table.storage)
    assert "hms_iceberg.erasure" not in table.properties


@pytest.mark.parametrize("kind", ["secret", "ed25519"])
def test_a_report_is_verified_with_its_key_and_no_other(table: Table, kind: str) -> None:
    sign = verify = b"0123456789abcdef0123"
    other = b"another secret of the same kind"
    if kind == "ed25519":
        private, wrong = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        pem, raw = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        sign = private.private_bytes(pem, raw, serialization.NoEncryption())
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        verify, other = (each.public_key().public_bytes(pem, public) for each in (private, wrong))
    report = table.forget("id = 2", dry_run=False, after=NOW, sign_key=sign).report
    assert report is not None
    read: dict[str, Any] = json.loads(json.dumps(report))
    assert verify_report(read, verify)
    assert not verify_report(read, other)
    assert not verify_report({**read, "rows": 7}, verify)
    assert not verify_report({key: value for key, value in read.items() if key != "signature"}, verify)


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_encrypted_tables_stay_encrypted_and_their_journal_holds_no_predicate(tmp_path: Path, file_format: str) -> None:
    keystore = tmp_path / "keys.json"
    keystore.write_text(json.dumps({"one": base64.b64encode(bytes(range(16))).decode()}))
    keystore.chmod(0o600)
    settings = {"encryption.kms-type": "keystore", "kms.keystore.path": str(keystore)}
    catalog = load_catalog("keyed", type="hadoop", warehouse=str(tmp_path / "warehouse"), **settings)
    catalog.create_namespace("db")
    properties = {"format-version": "3", "encryption.key-id": "one", "write.format.default": file_format}
    own = pa.table({"id": [1, 2, 3], "city": ["a", "Zq7Kx93MbTwe", None]})
    table = catalog.create_table("db.t", own.schema, properties={**properties, "write.delete.mode": "merge-on-read"})
    table.append(own)
    table.delete("id = 3")
    where = "city = 'Zq7Kx93MbTwe'"
    table.forget(where, dry_run=False)
    assert left_of("Zq7Kx93MbTwe", tmp_path) == []
    with pytest.raises(InvalidInputError, match="does not hold the predicate"):
        resume_forget(table, now=True)
    with pytest.raises(InvalidInputError, match="about another predicate"):
        resume_forget(table, where="id = 1", now=True)
    result = resume_forget(table, where=where, now=True)
    assert result is not None and result.report is not None
    table = catalog.load_table("db.t")
    found = [table.scan(snapshot_id=each.snapshot_id).to_arrow()["id"].to_pylist() for each in table.snapshots()]
    assert found == [[1, 3], [1]]
    names = [Path(each.removeprefix("file:")) for each in result.report["proof"]["files"][0]["file"].split()]
    assert all(each.read_bytes()[:4] in (b"PARE", b"AGS1") for each in names)


def with_ids(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(field_id)})


def test_copies_of_rows_in_delete_files_go_and_their_deletes_stay(tmp_path: Path) -> None:
    """Writers may put whole rows beside positions, and further columns beside keys."""
    person = "Zq7Kx93MbTwe"
    table = create(tmp_path, schema=SCHEMA)
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    (data,) = (task.file for task in table.scan("id = 1").plan_files())
    row = pa.struct([with_ids(pa.field("id", pa.int64()), 1), with_ids(pa.field("city", pa.string()), 2)])
    positions = pa.schema(
        [
            with_ids(pa.field("file_path", pa.string(), False), 2147483546),
            with_ids(pa.field("pos", pa.int64(), False), 2147483545),
            with_ids(pa.field("row", row), 2147483544),
        ]
    )
    keys = pa.schema([with_ids(pa.field("id", pa.int64()), 1), with_ids(pa.field("city", pa.string()), 2)])
    copy = {"file_path": [data.file_path], "pos": [0], "row": [{"id": 1, "city": person}]}
    files = [
        written(tmp_path, pa.table(copy, positions), DataFileContent.POSITION_DELETES),
        written(tmp_path, pa.table({"id": [2], "city": [person]}, keys), DataFileContent.EQUALITY_DELETES, (1,)),
    ]
    with table.transaction() as transaction:
        transaction.add(RowDelta(added=tuple(files)))
    assert ids(table.refresh()) == [3, 4]
    assert len(table.forget(f"city = '{person}'").plan.deletes) == 2

    table.forget(f"city = '{person}'", dry_run=False, after=NOW)

    assert ids(table.refresh()) == [3, 4]
    assert left_of(person, tmp_path) == []


def written(folder: Path, content: pa.Table, kind: DataFileContent, key: tuple[int, ...] | None = None) -> DataFile:
    path = folder / "events" / "data" / f"{kind.name}.parquet"
    pq.write_table(content, path, compression="none")
    size = path.stat().st_size
    return DataFile(
        content=kind,
        file_path=str(path),
        file_format="PARQUET",
        record_count=content.num_rows,
        file_size_in_bytes=size,
        equality_ids=key,
    )
