"""Loads catalogs by name, as they are configured, and makes the catalog of tables that are folders."""

from __future__ import annotations

from typing import Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.config import catalog_properties, default_catalog_name, known_catalogs
from hms_iceberg.encryption.key_services import check_service_type
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spec.json_model import text_properties


class HadoopCatalog(Catalog):
    """Tables in the folders of a warehouse, without a metastore; `load_catalog(type="hadoop", …)` gives one."""

    def __init__(self, name: str, **properties: Any) -> None:
        from hms_iceberg.table.file_system_catalog import FileSystemCatalog

        merged = text_properties(properties)
        storage = ArrowStorage(merged)
        super().__init__(name, FileSystemCatalog(merged.get("warehouse"), storage), storage, merged)


_KINDS = {"thrift": "hive", "http": "rest", "https": "rest"}


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """The catalog that is configured under `name`, with `properties` on top.

    Configuration is read from `.pyiceberg.yaml` (in `$PYICEBERG_HOME`, the home directory or the working directory)
    and from variables such as `PYICEBERG_CATALOG__PROD__URI`.

    Args:
        name: the catalog's name; None for the configured default.
        properties: `uri` (`thrift://host:9083`, several with commas), `type` (`hive`; `hadoop` for tables in folders;
            `rest` for a server of the Iceberg REST protocol, with a URI such as `http://host:8181`), `warehouse`,
            storage properties such as `s3.endpoint`; pass dotted names as `**{"s3.endpoint": …}`.

    Raises:
        ConfigurationError: no URI (no warehouse for `hadoop`), or a type of catalog or key service that nobody has.
    """
    name = name or default_catalog_name()
    merged = catalog_properties(name, properties)
    check_service_type(merged)
    uri = merged.get("uri")
    kind = merged.get("type") or ("hive" if uri is None else _KINDS.get(uri.partition("://")[0].lower()))
    if kind is not None and kind.lower() == "rest":
        from hms_iceberg.catalog.rest import RestCatalog

        return RestCatalog(name, **merged)
    if kind is not None and kind.lower() == "hadoop":
        return HadoopCatalog(name, **merged)
    if kind is None or kind.lower() != "hive":
        meant = f" Did you mean thrift://{uri}?" if uri and "://" not in uri else ""
        raise ConfigurationError(
            f"Catalog {name!r}: type {kind!r} with URI {uri!r} is not supported; expected type 'hive' with a URI such "
            "as thrift://host:9083, type 'rest' with one such as http://host:8181, or type 'hadoop' with a warehouse. "
            f"Set the properties `type` and `uri`.{meant}"
        )
    if uri is None:
        raise ConfigurationError(
            f"Catalog {name!r} has no URI. Pass uri='thrift://host:9083', set it in .pyiceberg.yaml, or set the "
            f"environment variable PYICEBERG_CATALOG__{name.upper()}__URI. "
            f"Configured catalogs: {', '.join(known_catalogs()) or 'none'}."
        )
    from hms_iceberg.catalog.hive import HiveCatalog

    return HiveCatalog(name, **merged)


def list_catalogs() -> list[str]:
    """Names of the configured catalogs."""
    return known_catalogs()
