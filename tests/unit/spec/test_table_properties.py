"""The table of table properties: reading, checks, and that no name stands anywhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hms_iceberg
from hms_iceberg.arrow.formats.orc.orc_writer import _CODECS as _ORC_CODECS
from hms_iceberg.arrow.formats.parquet_writer import _CODECS as _PARQUET_CODECS
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spec import table_properties as table
from hms_iceberg.spec.manifests.avro_container import _CODEC_NAMES as _AVRO_CODECS

_NAME = re.compile(r"""["'](?:(?:write|read|commit|history|gc)\.[a-z.-]+)["']""")


def test_no_other_file_writes_a_property_s_name_or_default() -> None:
    root = Path(hms_iceberg.__file__).parent
    others = (path for path in root.rglob("*.py") if path.name != "table_properties.py")
    prefixes = {'"write.delete."', '"write.parquet."'}  # of many, not properties
    found = {(path.name, name) for path in others for name in _NAME.findall(path.read_text()) if name not in prefixes}
    assert found == set()


def test_every_property_says_what_it_does_and_its_default_can_be_set() -> None:
    rows = list(table.settings_rows())
    assert len({(row.name, row.reader) for row in rows}) == len(rows)
    assert all(row.about.endswith(".") and row.reader for row in rows)
    table.check_properties({row.name: row.default for row in rows if row.default})


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("commit.retry.num-retries", "many", "an integer"),
        ("write.target-file-size-bytes", "512MB", "an integer"),
        ("write.delete.mode", "merge-on-reed", "Did you mean merge-on-read"),
        ("write.orc.bloom.filter.fpp", "1.5", "between 0 and 1"),
        ("write.target-file-size-bytes", "-5", "at least 1, got '-5'"),
        ("write.delete.target-file-size-bytes", "0", "at least 1"),
        ("write.parquet.page-row-limit", "-5", "above 0"),
        ("write.parquet.page-row-limit", str(2**63), "of 64 bits"),
        ("write.parquet.compression-level", str(2**31), "of 32 bits"),
        ("write.orc.stripe-size-bytes", "0", "above 0"),
        ("write.metadata.metrics.max-inferred-column-defaults", "-1", "at least 0"),
        ("write.metadata.metrics.default", "truncate(0)", "truncate.length. with a length above 0, or full, got"),
        ("write.metadata.metrics.default", "countsx", "or full, got 'countsx'"),
        ("write.metadata.metrics.column.a.b", "most", "none, counts, .*, got 'most'"),
        ("write.parquet.compression-codec", "nonsense", "one of zstd, gzip, .*, got 'nonsense'"),
        ("write.orc.compression-codec", "snapy", "Did you mean snappy"),
        ("write.avro.compression-codec", "lzma", "one of gzip"),
    ],
)
def test_a_value_that_no_reader_could_use_is_refused_before_it_is_set(name: str, text: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=hint):
        table.check_properties({name: text})


def test_every_codec_that_a_writer_has_or_java_has_can_be_set() -> None:
    of_java = {"parquet": "LZO", "orc": "LZO", "avro": "GZIP"}
    for file_format, written in (("parquet", _PARQUET_CODECS), ("orc", _ORC_CODECS), ("avro", _AVRO_CODECS)):
        for name in (*written, of_java[file_format]):
            table.check_properties({f"write.{file_format}.compression-codec": name})


def test_a_size_of_files_that_a_table_has_already_is_read_and_one_that_no_file_can_have_is_refused() -> None:
    assert table.TARGET_FILE_BYTES.of({"write.target-file-size-bytes": "-5"}) == -5
    with pytest.raises(ConfigurationError, match="above 0"):
        table.PARQUET_PAGE_ROWS.of({"write.parquet.page-row-limit": "-5"})


def test_properties_that_the_package_does_not_know_are_the_user_s_own() -> None:
    table.check_properties({"owner": "ops", "write.somebody-elses.number": "x"})


def test_values_are_typed_and_the_default_counts_where_nothing_is_set() -> None:
    assert table.COMMIT_NUM_RETRIES.of({}) == 20
    assert table.COMMIT_NUM_RETRIES.of({"commit.retry.num-retries": "7"}) == 7
    assert table.GC_ENABLED.of({"gc.enabled": "FALSE"}) is False
    assert table.WRITE_MODES["merge"].of({"write.merge.mode": " Merge-On-Read "}) == "merge-on-read"
    assert dict(table.PARQUET_BLOOM_ENABLED.of_columns({"write.parquet.bloom-filter-enabled.column.a.b": "true"})) == {
        "a.b": "true"
    }


def test_appends_merge_manifests_only_if_they_are_told_to_and_other_commits_unless_told_not_to() -> None:
    assert table.MANIFEST_MERGE_ENABLED.name == table.MANIFEST_MERGE_ON_APPEND.name
    assert (table.MANIFEST_MERGE_ENABLED.of({}), table.MANIFEST_MERGE_ON_APPEND.of({})) == (True, False)
