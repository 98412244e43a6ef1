"""Every setting that Apache Iceberg's classes name is in the guide for those who come from Java, or is read here."""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hms_iceberg.docs.book import settings_page
from hms_iceberg.spark.read_options import _KNOWN, END_TIME, START_TIME
from tests.support.guides import PAGES, block

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.interop

CLASSES = (
    *("CatalogProperties", "TableProperties", "hive.HiveCatalog", "hive.MetastoreLock", "hive.HiveTableOperations"),
    *("hadoop.ConfigProperties", "spark.SparkSQLProperties", "spark.SparkReadOptions", "spark.SparkWriteOptions"),
)
_CONSTANT = re.compile(r"String (\w+) = \"(.*)\";")
# Of a table as a whole, which Java refuses in its properties; and owners, which are a database's own.
_NO_SETTINGS = re.compile(
    r"current-|default-|uuid$|snapshot-count$|comment$|format-version$|hive\.metastore\.(table|database)\.owner"
)
_VALUES = re.compile(r"_DEFAULT|_(NONE|HASH|RANGE|BINDING|COMPENSATION)$|^ENCRYPTION_KMS_\w+_(AWS|AZURE|GCP)$")
_WORD = re.compile(r"`([^`\s]+)`")


def test_every_setting_of_java_is_told_of(java_runtime: tuple[Path, Path]) -> None:
    jar, _ = java_runtime
    command = ["javap", "-constants", "-private", "-cp", jar, *(f"org.apache.iceberg.{each}" for each in CLASSES)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    named = {value for name, value in _CONSTANT.findall(told) if not _VALUES.search(name)}
    known = set(_WORD.findall(PAGES["docs/FROM-JAVA.md"].read_text(encoding="utf-8") + settings_page()))
    known = {re.sub(r"<\w+>$", "*", each) for each in known} | {
        *_KNOWN,
        START_TIME,
        END_TIME,
        "path",
        "snapshot-property",
    }

    assert len(named) > 200
    settings = {each for each in named if not _NO_SETTINGS.match(each)}
    left = {each for each in settings if not any(fnmatchcase(each.lower(), word) for word in known)}
    assert left == set()


_SESSION = """
{code}
print([row.id for row in spark.table("ice.web_of_java.clicks").collect()])
"""


@pytest.mark.spark
def test_a_session_that_is_set_up_for_java_runs_without_its_jar(
    metastore: EmbeddedMetastore, catalog: Catalog, tmp_path: Path
) -> None:
    code = block("docs/FROM-JAVA.md", "The session", "python").code
    for text, here in (("thrift://metastore:9083", metastore.uri), ("web.", "web_of_java.")):
        code = code.replace(text, here)
    catalog.create_namespace("web_of_java")

    ran = subprocess.run(
        [sys.executable, "-c", _SESSION.format(code=code)], capture_output=True, text=True, timeout=300
    )

    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == "[1]\n"
    assert catalog.load_table("web_of_java.clicks").scan().count() == 1
