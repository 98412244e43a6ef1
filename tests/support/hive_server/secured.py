"""A metastore that wants Kerberos, on an HDFS that does."""

from __future__ import annotations

from pathlib import Path

from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.hive_server.releases import Release
from tests.support.hive_server.server import HiveServer
from tests.support.kdc import REALM, Kdc

PRINCIPAL = f"metastore/localhost@{REALM}"
SASL = {"hive.kerberos-authentication": "true", "hive.kerberos-service-name": "metastore"}
"""What a catalog of it is told."""


def secured_metastore(release: Release, folder: Path, hdfs: HdfsCluster, realm: Kdc) -> HiveServer:
    """A metastore that makes folders on the cluster as whom it serves.

    Args:
        release: of Hive.
        folder: an empty folder.
        hdfs: the cluster of the warehouse.
        realm: whose users it knows.
    """
    properties = {
        **hdfs.settings,
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.keytab.file": str(realm.keytab(PRINCIPAL.removesuffix(f"@{REALM}"))),
        "metastore.kerberos.principal": PRINCIPAL,
        "hadoop.rpc.protection": "privacy,authentication",  # with a token, clients of Python cannot encrypt
        "metastore.warehouse.dir": f"{hdfs.nameservice}/warehouse",
    }
    return HiveServer(release, folder, properties, realm.java_options)
