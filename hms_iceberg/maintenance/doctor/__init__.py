"""Checks of what tables depend on: this machine, the metastore, the storage. A problem is told with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hms_iceberg.errors import IcebergError
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.maintenance.doctor.diagnosis import Diagnosis, Health, doubtful
from hms_iceberg.maintenance.doctor.machine_health import examine_machine, examine_storage
from hms_iceberg.maintenance.doctor.metastore_health import examine_metastore, examine_rest_catalog
from hms_iceberg.rest_client.rest_metastore import RestMetastore

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

__all__ = ["Diagnosis", "Health", "examine_surroundings"]


def examine_surroundings(catalog: Catalog | None) -> Iterator[Diagnosis]:
    """Checks this machine, the metastore, and the storage of a catalog, one after the other.

    Args:
        catalog: None looks at this machine only.
    """
    yield from examine_machine()
    if catalog is None:
        remedy = "Give --uri thrift://host:9083, or set PYICEBERG_CATALOG__DEFAULT__URI, to check them too."
        yield doubtful("metastore and storage", "not checked: no metastore is configured", remedy)
        return
    if isinstance(catalog.metastore, HiveMetastore):
        for diagnosis in examine_metastore(catalog.metastore, catalog.properties):
            yield diagnosis
            if (diagnosis.subject, diagnosis.state) == ("metastore", Health.BAD):
                return  # it would be asked where tables are
    elif isinstance(catalog.metastore, RestMetastore):
        for diagnosis in examine_rest_catalog(catalog.metastore):
            yield diagnosis
            if (diagnosis.subject, diagnosis.state) == ("metastore", Health.BAD):
                return
    folder = _folder(catalog)
    if folder is None:
        remedy = "Set the catalog's property warehouse, or create a namespace with a location."
        yield doubtful("storage", "nothing says where tables go", remedy)
    else:
        yield from examine_storage(catalog.storage, folder)


def _folder(catalog: Catalog) -> str | None:
    """Where the tables of a catalog are: its warehouse, or the location of a namespace."""
    warehouse = catalog.properties.get("warehouse")
    if warehouse:
        return warehouse
    for namespace in catalog.list_namespaces():
        try:
            location = catalog.load_namespace_properties(namespace).get("location")
        except IcebergError:
            continue
        if location:
            return location
    return None
