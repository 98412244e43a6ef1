"""The session's own metastore as a catalog, opened for a commit."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spark.catalogs import OpenCatalog, OpenCatalogs, OpenSessionCatalog, open_catalog, open_session_catalog


def _asked(hive: dict[str, str], **options: str) -> OpenSessionCatalog:
    return OpenSessionCatalog("spark_catalog", hive, "file:/warehouse", options)


def test_a_session_catalog_has_the_settings_of_hive_under_those_of_the_extension() -> None:
    hive = {"hive.metastore.uris": "thrift://a:9083", "hive.metastore.client.socket.timeout": "7"}
    question = _asked(hive, **{"table-default.write.format.default": "orc", "uri": "thrift://elsewhere:1"})
    catalogs = OpenCatalogs()
    answer = open_session_catalog(catalogs, question, {"s3.endpoint": "http://here"})
    catalog = catalogs.of(answer)
    assert catalog.properties["uri"] == "thrift://a:9083"
    assert catalog.properties["warehouse"] == "file:/warehouse"
    assert catalog.properties["hive.metastore.client.socket.timeout"] == "7"
    assert catalog.properties["table-default.write.format.default"] == "orc"
    assert catalog.properties["s3.endpoint"] == "http://here"
    assert open_session_catalog(catalogs, question, {"s3.endpoint": "http://here"}) == answer


def test_a_metastore_inside_of_the_session_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"set spark.hadoop.hive.metastore.uris=thrift://host:9083"):
        open_session_catalog(OpenCatalogs(), _asked({}), {})


def test_a_named_catalog_without_a_metastore_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"set spark.sql.catalog.ice.uri"):
        open_catalog(OpenCatalogs(), OpenCatalog("ice", {"default-namespace": "db"}), {})
