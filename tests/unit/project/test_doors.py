"""The ways up of `hms_iceberg.doors`, and the module paths of PyIceberg, lead somewhere."""

from __future__ import annotations

from importlib import import_module

import pytest

from hms_iceberg import doors

MODULES = {
    "catalog": "Catalog load_catalog list_catalogs",
    "catalog.hive": "HiveCatalog",
    "conversions": "from_bytes to_bytes",
    "exceptions": "CommitFailedException NoSuchTableError ValidationError",
    "expressions": "And EqualTo BoundPredicate BoundReference UnboundPredicate",
    "expressions.parser": "parse",
    "io": "FileIO InputFile OutputFile load_file_io",
    "io.pyarrow": "pyarrow_to_schema schema_to_pyarrow",
    "manifest": "DataFile DataFileContent FileFormat ManifestFile",
    "partitioning": "PartitionField PartitionSpec UNPARTITIONED_PARTITION_SPEC",
    "schema": "Schema",
    "table": "DataScan StaticTable Table TableProperties Transaction UpsertResult",
    "table.locations": "LocationProvider load_location_provider",
    "table.metadata": "TableMetadata TableMetadataUtil",
    "table.name_mapping": "NameMapping create_mapping_from_schema",
    "table.refs": "SnapshotRef SnapshotRefType",
    "table.snapshots": "Operation Snapshot Summary",
    "table.sorting": "NullOrder SortDirection SortField SortOrder UNSORTED_SORT_ORDER",
    "table.statistics": "StatisticsFile",
    "transforms": "BucketTransform DayTransform parse_transform",
    "typedef": "Identifier Record",
    "types": "ListType NestedField StringType StructType",
    "view": "View",
    "view.metadata": "SQLViewRepresentation ViewVersion",
}


@pytest.mark.parametrize("name", doors.names())
def test_every_way_up_leads_to_something_that_can_be_called(name: str) -> None:
    assert callable(doors.door(name))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_path_of_pyiceberg_has_its_names(name: str) -> None:
    module = import_module(f"hms_iceberg.{name}")
    for each in (*MODULES[name].split(), *getattr(module, "__all__", ())):
        assert getattr(module, each) is not None
