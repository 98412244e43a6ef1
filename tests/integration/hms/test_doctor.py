"""The doctor on a real metastore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hms_iceberg.catalog import load_catalog
from hms_iceberg.maintenance.doctor import Health, examine_surroundings

if TYPE_CHECKING:
    from hms_iceberg.hms.embedded import EmbeddedMetastore


def test_a_sound_metastore_is_told_as_such_and_left_as_it_was(metastore: EmbeddedMetastore, tmp_path: Path) -> None:
    with load_catalog(type="hive", uri=metastore.uri, warehouse=str(tmp_path)) as catalog:
        found = {each.subject: each for each in examine_surroundings(catalog)}
        assert {each.said for each in found.values() if each.state is Health.BAD} == set()
        assert found["release"].said == "Hive 2 or 3; it compares before it changes a row (HIVE-26882)"
        assert found["locks"].said.startswith("taken in ")
        assert found["metastore's clock"].said == found["storage's clock"].said == "that of this machine"
        assert "disallow.incompatible.col.type.changes=false" in found["settings"].said
        assert catalog.list_tables("default") == [] and list(tmp_path.iterdir()) == []


def test_settings_that_lose_locks_or_cannot_be_kept_are_told_with_what_mends_them(metastore: EmbeddedMetastore) -> None:
    with load_catalog(
        type="hive",
        uri=metastore.uri,
        warehouse=str(metastore.warehouse),
        **{"iceberg.hive.lock-heartbeat-interval-ms": "900000", "iceberg.hive.trust-notifications": "true"},
    ) as catalog:
        bad = [
            each for each in examine_surroundings(catalog) if each.subject == "settings" and each.state is Health.BAD
        ]
        assert "their locks are lost" in bad[0].said
        assert bad[0].remedy == "iceberg.hive.lock-heartbeat-interval-ms=100000 (in the catalog's properties)"
        assert "no table can be loaded" in bad[1].said and "Use Hive 3 or newer" in bad[1].remedy
