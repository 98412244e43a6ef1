"""The command line tells what PyIceberg's tells of the same tables, in its JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.interop
peer = pytest.importorskip("pyiceberg.cli.console", reason="needs PyIceberg's command line")


def test_the_same_words_tell_the_same(
    catalog: Catalog, namespace: str, metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "page": ["/", None]})
    name = f"{namespace}.visits"
    catalog.create_table(name, rows.schema, properties={"owner": "ops"}).append(rows)
    before = ["--uri", metastore.uri, "--output", "json"]

    for words in (
        ["list"],
        ["list", namespace],
        ["describe", namespace],
        ["describe", name],
        ["schema", name],
        ["spec", name],
        ["location", name],
        ["uuid", name],
        ["properties", "get", "table", name],
        ["properties", "get", "table", name, "owner"],
        ["properties", "get", "namespace", namespace],
        ["properties", "get", "namespace", namespace, "location"],
    ):
        theirs = CliRunner().invoke(peer.run, [*before, *words])
        assert theirs.exit_code == 0, theirs.output
        assert main([*before, *words]) == 0
        assert _sorted(json.loads(capsys.readouterr().out)) == _sorted(json.loads(theirs.stdout)), words


def _sorted(value: object) -> object:
    """Without what only one of the two writes: nulls, empty collections, and a namespace's owner."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.startswith("hive.metastore.database.owner")}
        return {key: _sorted(each) for key, each in sorted(kept.items()) if each not in (None, [], {})}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
