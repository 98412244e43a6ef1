"""Names that are too long for a metastore's rows or its locks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.embedded import EmbeddedMetastore


def test_a_name_with_which_no_commit_could_be_made_is_refused_before_anything_is_written(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str
) -> None:
    schema, most, longer = pa.schema([("id", pa.int64())]), "t" * 128, "t" * 129
    table = catalog.create_table(f"{namespace}.{most}", schema)
    table.append(pa.table({"id": [1]}))
    folder = Path(catalog.load_namespace_properties(namespace)["location"].removeprefix("file:"))
    before = sorted(folder.rglob("*"))
    refused = (
        lambda: catalog.create_table(f"{namespace}.{longer}", schema),
        lambda: catalog.create_table_transaction(f"{namespace}.{longer}", schema),
        lambda: catalog.create_or_replace_table(f"{namespace}.{longer}", schema),
        lambda: catalog.register_table(f"{namespace}.{longer}", table.metadata_location),
        lambda: catalog.rename_table(f"{namespace}.{most}", f"{namespace}.{longer}"),
        lambda: catalog.create_namespace("n" * 129),
    )
    for refuse in refused:
        with pytest.raises(InvalidInputError, match=r"129 characters.*128"):
            refuse()
    assert sorted(folder.rglob("*")) == before
    assert catalog.list_tables(namespace) == [(namespace, most)]
    with load_catalog("auto", type="hive", uri=metastore.uri, **{"iceberg.engine.hive.lock-enabled": False}) as other:
        other.create_table(f"{namespace}.{longer}", schema).append(pa.table({"id": [1]}))
        other.drop_table(f"{namespace}.{longer}")
