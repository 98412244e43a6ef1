"""Hooks are set by the modules that they name, classes have their JSON form, and PyIceberg's module paths exist."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from hms_iceberg.expressions import tree
from hms_iceberg.hooks import Hook
from hms_iceberg.spec import schema, snapshots_and_refs
from hms_iceberg.spec.json_model import JsonModel
from hms_iceberg.spec.manifests import manifest_values
from hms_iceberg.spec.transforms import partition_transforms
from hms_iceberg.table import table

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


def _hooks() -> list[tuple[str, Hook[..., Any]]]:
    modules = (schema, snapshots_and_refs, partition_transforms, manifest_values, tree, table)
    return [(name, each) for module in modules for name, each in vars(module).items() if isinstance(each, Hook)]


@pytest.mark.parametrize(("name", "hook"), _hooks())
def test_every_hook_is_set_by_the_module_that_it_names(name: str, hook: Hook[..., Any]) -> None:
    assert hasattr(import_module(hook._home), name)
    assert callable(hook._function)


def _models(kind: type[JsonModel]) -> list[type[JsonModel]]:
    return [each for child in kind.__subclasses__() for each in (child, *_models(child))]


@pytest.mark.parametrize("kind", _models(JsonModel))
def test_every_class_with_a_json_form_has_one(kind: type[JsonModel]) -> None:
    assert kind._json_form() is not None


@pytest.mark.parametrize("name", MODULES)
def test_a_module_path_of_pyiceberg_has_its_names(name: str) -> None:
    module = import_module(f"hms_iceberg.{name}")
    for each in (*MODULES[name].split(), *getattr(module, "__all__", ())):
        assert getattr(module, each) is not None
