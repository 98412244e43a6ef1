"""What warehouses on HDFS have beside files: encryption zones, snapshots, trash, sticky bits, quotas."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import MigrationError, StorageDeniedError, StorageError
from hms_iceberg.migration import migrate
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_warehouse import HiveWarehouse
from tests.support.refusals import refused_in_one_line
from tests.support.spread import ALL
from tests.support.store_tables import ids, new_table, rows


def files(storage: ArrowStorage, place: str) -> list[str]:
    return sorted(info.location for info in storage.list(place))


def path_of(cluster: HdfsCluster, location: str) -> str:
    return location.removeprefix(cluster.nameservice)


def test_in_an_encryption_zone_without_its_keys_nothing_is_written_and_the_setting_is_named(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    cluster.command("encryption-zone", path_of(cluster, folder))
    cluster.command("write", f"{path_of(cluster, folder)}/secret", "of Java")
    for call in (storage.read, lambda place: storage.create(f"{place}s", b"x")):
        with refused_in_one_line(
            StorageError, f"{folder}/secret", "encryption zone", "hadoop.security.key.provider.path"
        ):
            call(f"{folder}/secret")
    assert files(storage, folder) == [f"{folder}/secret"]


def test_snapshots_and_trash_of_a_folder_are_no_orphans_and_outlive_the_table(
    catalog: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    table = new_table(catalog)
    root = table.location()
    trashed = f"{root}/.Trash/alice/Current/data/old.parquet"
    storage.create(trashed, b"x")
    cluster.command("snapshot", path_of(cluster, root), "before")
    kept = files(storage, f"{root}/.snapshot/before")
    table.append(rows(3))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    late = datetime.now(timezone.utc) + timedelta(seconds=1)
    assert table.maintenance.remove_orphan_files(older_than=late, nobody_writes=True).locations == ()
    assert ids(table) == [1, 2, 3]
    catalog.purge_table(table.name())
    assert not catalog.table_exists(table.name())
    assert files(storage, f"{root}/.snapshot/before") == kept
    assert files(storage, root) == [trashed]


@pytest.fixture
def stranger(catalog: Catalog, cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalog of a user without special rights."""
    catalog.storage.exists(f"{cluster.nameservice}/a")  # connected as who it is, if no test before did that
    with (
        monkeypatch.context() as patch,
        load_catalog("stranger", uri=catalog.properties["uri"], **cluster.settings) as found,
    ):
        patch.setenv("HADOOP_USER_NAME", "mallory")
        yield found


def test_who_may_not_delete_files_of_others_is_told_before_a_table_is_dropped(
    catalog: Catalog, stranger: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    table = new_table(catalog)
    for each in ("", "/data", "/metadata"):
        cluster.command("setpermission", path_of(cluster, table.location()) + each, "1777")
    before = files(storage, table.location())
    stranger.load_table(table.name()).append(rows(3))
    with pytest.raises(StorageDeniedError, match="sticky"):
        stranger.purge_table(table.name())
    assert ids(table) == [1, 2, 3]
    assert set(before) < set(files(storage, table.location()))
    catalog.purge_table(table.name())
    assert files(storage, table.location()) == []


def hive_table(catalog: Catalog) -> tuple[HiveWarehouse, str, str]:
    """A table with three rows in two files; its warehouse, its name and its folder."""
    hive, name = HiveWarehouse(catalog, "web"), f"hive_{uuid.uuid4().hex}"
    root = hive.create(name, "id bigint, page string", "day string").table.sd.location
    hive.add_partition(name, ["mon"], rows(1, 2), rows(3))
    return hive, name, root


def test_a_hive_table_whose_folder_this_user_may_not_write_to_stays_as_it_is(
    catalog: Catalog, stranger: Catalog, storage: ArrowStorage
) -> None:
    hive, name, root = hive_table(catalog)
    before = hive.rows(name), files(storage, root)
    with pytest.raises(StorageDeniedError, match="user=mallory"):
        migrate(stranger, ("web", name))
    assert (hive.rows(name), files(storage, root)) == before
    assert migrate(catalog, ("web", name)).records == 3
    assert ids(catalog.load_table(f"web.{name}")) == [1, 2, 3]


def test_a_hive_table_whose_quota_is_too_small_for_its_metadata_stays_as_it_is_until_it_fits(
    catalog: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    hive, name, root = hive_table(catalog)
    before = hive.rows(name), files(storage, root)
    refusals = []
    for quota in range(len(before[1]) + 2, 30, 1 if ALL else 2):  # names: the folder and its partition's count too
        cluster.dfsadmin("-setQuota", str(quota), path_of(cluster, root))
        try:
            assert migrate(catalog, ("web", name)).records == 3
            break
        except (StorageError, MigrationError) as error:
            refusals.append(str(error))
        assert (hive.rows(name), files(storage, root)) == before
    assert len(refusals) > 2 and all("quota" in each for each in refusals)
    assert ids(catalog.load_table(f"web.{name}")) == [1, 2, 3]
