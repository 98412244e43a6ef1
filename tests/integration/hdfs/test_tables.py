"""Tables on a real HDFS from Python: a metastore's, and those that are folders."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import ConfigurationError, StorageDeniedError, UnsupportedError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.doctor.machine_health import examine_storage
from hms_iceberg.maintenance.repair import repair_table
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from tests.support.guides import lines_of
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.store_tables import SCHEMA, ids, new_table, rows


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return new_table(catalog)


def files(storage: ArrowStorage, folder: str) -> list[str]:
    return sorted(info.location for info in storage.list(folder))


def test_tables_are_created_changed_compacted_expired_and_purged(
    catalog: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    table = catalog.create_table("web.visits", SCHEMA, properties={"format-version": "3"})
    assert table.location() == f"{cluster.nameservice}/warehouse/web.db/visits"
    for some in ((1,), (2, 3), (4, 5)):
        table.append(rows(*some))
    table.delete("id = 2")
    with table.update_schema() as schema:
        schema.add_column("seconds", "double")
    table.append(pa.table({"id": [6], "page": ["/6"], "seconds": [0.5]}))
    table.upsert(pa.table({"id": [6], "page": ["/new"], "seconds": [None]}), join_cols=["id"])
    result = table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert result.rewritten_data_files_count >= 4
    expected = {"id": [1, 3, 4, 5, 6], "page": ["/1", "/3", "/4", "/5", "/new"], "seconds": [None] * 5}
    assert catalog.load_table("web.visits").scan().to_arrow().sort_by("id").to_pydict() == expected
    before = files(storage, table.location())
    table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
    assert len(files(storage, table.location())) < len(before)
    assert catalog.load_table("web.visits").scan().to_arrow().sort_by("id").to_pydict() == expected
    catalog.purge_table("web.visits")
    assert files(storage, table.location()) == []


def test_an_orphan_is_deleted_and_nothing_else_is_by_every_spelling_of_the_folder(
    metastore: EmbeddedMetastore, table: Table, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    mounts = {"fs.viewfs.mounttable.all.link./lake/warm": f"{cluster.nameservice}/warehouse"}
    path = table.location().removeprefix(f"{cluster.nameservice}/warehouse")
    spellings = (
        "hdfs://ns1:8020/warehouse",
        f"{cluster.address}/warehouse",
        "hdfs:///warehouse",
        "viewfs://all/lake/warm",
    )
    before = files(storage, table.location())
    late = datetime.now(timezone.utc) + timedelta(seconds=60)
    with load_catalog("mounted", uri=metastore.uri, **cluster.settings, **mounts) as catalog:
        mounted = catalog.load_table(table.name())
        for spelling in spellings:
            storage.create(f"{table.location()}/data/orphan.parquet", b"x")
            found = mounted.maintenance.remove_orphan_files(
                older_than=late, nobody_writes=True, location=f"{spelling}{path}"
            )
            assert found.locations == (f"{spelling}{path}/data/orphan.parquet",)
            assert files(storage, table.location()) == before
    assert ids(table) == [1, 2]


WHOLE = pytest.mark.whole  # what takes the place of each lost file is found as on local disks
LOST = ["metadata", pytest.param("list", marks=WHOLE), "manifest of data"]


@pytest.mark.parametrize("lost", [*LOST, pytest.param("manifest of deletes", marks=WHOLE)])
def test_a_table_whose_folder_has_two_spellings_is_repaired_without_a_loss(
    catalog: Catalog, cluster: HdfsCluster, lost: str
) -> None:
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table(f"web.t{uuid.uuid4().hex}", SCHEMA, properties=properties)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.delete("id in (1, 4)")
    table.update_location(table.location().replace(cluster.nameservice, cluster.address))
    if lost == "metadata":
        table.set_properties({"lost": "this"})
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    content = ManifestContent.DELETES if lost.endswith("deletes") else ManifestContent.DATA
    manifest = next(each for each in snapshot.manifests(table.io) if each.content is content)
    doomed = {"metadata": table.metadata_location, "list": snapshot.manifest_list}.get(lost, manifest.manifest_path)
    table.storage.delete(doomed)
    result = repair_table(catalog, table.identifier, dry_run=False, accept_loss=lost == "metadata")
    assert result.plan.steps and not result.plan.refused, str(result.plan)
    table = catalog.load_table(table.name())
    assert ids(table) == [2, 3, 5]
    assert check_table(table, record_counts=True).findings == ()


def test_rows_are_forgotten_by_whichever_spelling_files_are_named_unless_another_table_names_them(
    catalog: Catalog, cluster: HdfsCluster, storage: ArrowStorage
) -> None:
    table = catalog.create_table(f"web.t{uuid.uuid4().hex}", SCHEMA)
    table.append(rows(1, 2))
    table.update_location(table.location().replace(cluster.nameservice, cluster.address))
    table.append(rows(3, 4))
    [shared] = [task.file.file_path for task in table.scan("id = 2").plan_files()]
    other = catalog.create_table(f"web.t{uuid.uuid4().hex}", SCHEMA)
    other.add_files([shared.replace(cluster.nameservice, cluster.address)])
    with pytest.raises(UnsupportedError, match=f"needed by table {'.'.join(other.name())}"):
        table.forget("id = 2", dry_run=False, after=timedelta(0))
    done = table.forget("id = 4", dry_run=False, after=timedelta(0))
    assert done.report is not None and not done.left
    assert (ids(table), ids(other)) == ([1, 2, 3], [1, 2])
    left = files(storage, table.location().replace(cluster.address, cluster.nameservice))
    assert len([each for each in left if each.endswith(".parquet")]) == 2
    assert check_table(table).findings == ()


def test_appends_side_by_side_are_all_kept(catalog: Catalog, table: Table) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: catalog.load_table(table.name()).append(rows(each)), range(10, 18)))
    assert ids(table) == [1, 2, *range(10, 18)]


def test_tables_that_are_folders_are_written_by_several_at_once(cluster: HdfsCluster, folder: str) -> None:
    catalog = load_catalog("folders", type="hadoop", warehouse=folder, **cluster.settings)
    catalog.create_namespace("web")
    made = catalog.create_table("web.visits", SCHEMA)

    def append(number: int) -> None:
        own = load_catalog("folders", type="hadoop", warehouse=folder, **cluster.settings)
        own.load_table("web.visits").append(rows(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(8)))
    assert ids(made) == list(range(8))
    names = [each.rpartition("/")[2] for each in files(ArrowStorage(cluster.settings), f"{folder}/web/visits/metadata")]
    assert [f"v{version}.metadata.json" in names for version in range(1, 10)] == [True] * 9
    assert [name for name in names if name.endswith(".tmp")] == []
    catalog.purge_table("web.visits")
    assert catalog.list_tables("web") == []


def test_with_libhdfs_tables_that_are_folders_are_not_written(cluster: HdfsCluster, folder: str) -> None:
    tables = FileSystemTables({**cluster.settings, "hdfs.client": "libhdfs"})
    with pytest.raises((UnsupportedError, ConfigurationError), match=r"by libhdfs|not exclusive on hdfs"):
        tables.create(SCHEMA, f"{folder}/t")
    assert files(ArrowStorage(cluster.settings), folder) == []


def test_the_lines_of_the_guide_run_as_they_stand(
    metastore: EmbeddedMetastore, cluster: HdfsCluster, storage: ArrowStorage, tmp_path: Path
) -> None:
    (tmp_path / "monday.csv").write_text("id,page\n1,/\n2,/buy\n")
    real = {"/etc/hadoop/conf": str(cluster.folder / "conf"), "thrift://metastore:9083": metastore.uri}
    own = dict(os.environ)
    for program, *words in lines_of("arrow/storage", "On a Hadoop cluster"):
        if program == "export":
            name, _, value = words[0].partition("=")
            own[name] = real[value]
            continue
        command = [sys.executable, "-m", "hms_iceberg", *words]
        ran = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "rows.csv").read_text().split() == ['"id","page"', '1,"/"', '2,"/buy"']
    assert any(info.size for info in storage.list(f"{cluster.nameservice}/warehouse/lake.db/visits/data"))


def test_the_doctor_finds_a_cluster_in_order_and_leaves_nothing_there(storage: ArrowStorage, folder: str) -> None:
    storage.create(f"{folder}/kept", b"")
    found = {each.subject: each.state.name for each in examine_storage(storage, folder)}
    assert found == {"storage": "GOOD", "overwriting": "GOOD", "storage's clock": "GOOD"}
    filesystem, path = storage.filesystem(folder)
    assert [info.base_name for info in filesystem.get_file_info(fs.FileSelector(path))] == ["kept"]


def test_without_the_right_to_write_nothing_changes(
    catalog: Catalog, table: Table, cluster: HdfsCluster, storage: ArrowStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(storage, table.location())
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    with load_catalog("stranger", uri=catalog.properties["uri"], **cluster.settings) as stranger:
        assert stranger.load_table(table.name()).scan().count() == 2
        with pytest.raises(StorageDeniedError, match="user=mallory"):
            stranger.load_table(table.name()).append(rows(3))
    monkeypatch.undo()
    assert files(storage, table.location()) == before
    assert ids(table) == [1, 2]


def test_a_commit_goes_on_when_the_other_namenode_takes_over(
    catalog: Catalog, table: Table, cluster: HdfsCluster
) -> None:
    try:
        cluster.activate(1)
        table.append(rows(3))
    finally:
        cluster.activate(0)
    table.append(rows(4))
    assert ids(table) == [1, 2, 3, 4]
