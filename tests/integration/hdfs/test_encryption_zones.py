"""Encryption zones whose keys a real KMS gives: files as Hadoop's own client reads and writes them, and tables."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import StorageDeniedError, StorageError
from hms_iceberg.migration import migrate, rollback
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_warehouse import HiveWarehouse
from tests.support.kdc import Kdc
from tests.support.kms import Kms
from tests.support.maven import UnavailableError
from tests.support.refusals import refused_in_one_line
from tests.support.store_tables import SCHEMA, catalog_of, ids, metastore_in, rows

pytestmark = [pytest.mark.slow, pytest.mark.whole]

CONTENT = os.urandom(3 * 2**20 + 5)


@pytest.fixture(scope="module")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    """An HDFS that asks a KMS for keys, and has the encryption zone `/zone`."""
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    try:
        with (
            Kms(tmp_path_factory.mktemp("keys")) as kms,
            HdfsCluster(tmp_path_factory.mktemp("zoned"), keys=kms.uri) as cluster,
        ):
            cluster.command("encryption-zone", "/zone")
            yield cluster
    except UnavailableError as error:
        pytest.skip(str(error))  # no Java, or jars that are in no cache and Maven cannot fetch here


def test_hadoops_client_reads_what_is_written_and_what_it_wrote_is_read_from_any_position(
    zoned: HdfsCluster, tmp_path: Path
) -> None:
    storage = ArrowStorage(zoned.settings)
    storage.create(f"{zoned.nameservice}/zone/ours", CONTENT)
    zoned.command("get", "/zone/ours", str(tmp_path / "ours"))
    assert (tmp_path / "ours").read_bytes() == CONTENT
    zoned.command("put", str(tmp_path / "ours"), "/zone/theirs")
    assert storage.read(f"{zoned.nameservice}/zone/theirs") == CONTENT
    with storage.open_input(f"{zoned.nameservice}/zone/theirs") as file:
        for start, length in ((0, 1), (15, 2), (16, 16), (2**20 - 3, 2**20), (len(CONTENT) - 7, 7)):
            file.seek(start)
            assert file.read(length) == CONTENT[start : start + length]
    for name in ("ours", "theirs"):
        kept = storage.read(f"{zoned.nameservice}/.reserved/raw/zone/{name}")
        assert len(kept) == len(CONTENT) and kept[:4096] != CONTENT[:4096], "the DataNode has no plain bytes"


def test_a_table_in_a_zone_is_made_changed_and_maintained(zoned: HdfsCluster) -> None:
    place = f"{zoned.nameservice}/zone/{uuid.uuid4()}"
    with load_catalog("zoned", type="hadoop", warehouse=place, **zoned.settings) as catalog:
        catalog.create_namespace("web")
        for form in ("parquet", "orc", "avro"):
            table = catalog.create_table(f"web.{form}", SCHEMA, properties={"write.format.default": form})
            table.append(rows(1, 2))
            table.append(rows(3))
            table.delete("id = 1")
            table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
            table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
            assert ids(table) == [2, 3]


def test_a_hive_table_in_a_zone_is_migrated_changed_and_brought_back(zoned: HdfsCluster) -> None:
    with (
        metastore_in(f"{zoned.nameservice}/zone/warehouse", lambda: (), zoned.settings) as metastore,
        catalog_of(metastore, zoned.settings) as catalog,
    ):
        hive, name = HiveWarehouse(catalog, "web"), ("web", "clicks")
        location = hive.create("clicks", "id bigint, page string", "day string").table.sd.location
        hive.add_partition("clicks", ["mon"], rows(1, 2), rows(3))
        files = {file.location for file in catalog.storage.list(location)}
        assert migrate(catalog, name).records == 3
        table = catalog.load_table(name)
        table.delete("id = 1")
        assert ids(table) == [2, 3]
        rollback(catalog, name, discard_changes=True)
        assert files <= {file.location for file in catalog.storage.list(location)}
        assert len(hive.rows("clicks").partitions) == 1


def test_if_no_server_of_keys_answers_that_is_said_and_nothing_is_left(zoned: HdfsCluster) -> None:
    nobody = "kms://http@localhost:1/kms"
    storage = ArrowStorage({**zoned.settings, "hadoop.security.key.provider.path": nobody})
    place = f"{zoned.nameservice}/zone/{uuid.uuid4()}"
    with refused_in_one_line(StorageError, place, "localhost:1"):
        storage.create(f"{place}/file", b"x")
    ArrowStorage(zoned.settings).create(f"{place}/whole", b"x")
    with refused_in_one_line(StorageError, place, "localhost:1"):
        storage.read(f"{place}/whole")
    assert [file.location for file in storage.list(place)] == [f"{place}/whole"]


def test_a_server_of_keys_that_wants_kerberos_takes_tickets_and_keytabs_but_not_a_token_of_hdfs(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    keytab, tickets = realm.keytab("keeper"), tmp_path / "tickets"
    realm.ticket("keeper", keytab, tickets)
    monkeypatch.setenv("KRB5_CONFIG", str(realm.krb5_conf))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tickets}")
    (tmp_path / "keys").mkdir()
    try:
        with Kms(tmp_path / "keys", realm) as kms, HdfsCluster(tmp_path / "hdfs", realm, kms.uri) as cluster:
            cluster.command("encryption-zone", "/zone")
            cluster.command("setpermission", "/zone", "777")
            by_keytab = {"hdfs.kerberos-principal": "keeper", "hdfs.kerberos-keytab": str(keytab)}
            for name, login in (("ticket", {}), ("keytab", by_keytab)):
                storage = ArrowStorage({**cluster.settings, **login})
                storage.create(f"{cluster.nameservice}/zone/{name}", CONTENT)
                assert storage.read(f"{cluster.nameservice}/zone/{name}") == CONTENT
            token = cluster.token("keeper", keytab, cluster.nameservice)
            monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(token))
            monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'absent'}")
            storage = ArrowStorage(cluster.settings)
            assert storage.length(f"{cluster.nameservice}/zone/ticket") == len(CONTENT), "the token is good for HDFS"
            with pytest.raises(StorageDeniedError, match=r"no valid Kerberos ticket .*run kinit"):
                storage.read(f"{cluster.nameservice}/zone/ticket")
    except UnavailableError as error:
        pytest.skip(str(error))  # no Java, KDC or jars of Hadoop, and none to be had by Maven here
