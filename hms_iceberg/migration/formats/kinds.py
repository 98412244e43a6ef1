"""Which format the files of a Hive table, or of one of its partitions, have.

Source: Apache Hive, `StorageFormats`; Apache Spark, `HiveSerDe.sourceToSerDe`.
"""

from __future__ import annotations

from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveStorage, HiveTable

PARQUET, ORC, AVRO = "PARQUET", "ORC", "AVRO"
_PROVIDER = "spark.sql.sources.provider"
_SERDES = {"parquethiveserde": PARQUET, "orcserde": ORC, "avroserde": AVRO}


def provider_of(table: HiveTable) -> str:
    """The Spark data source of a table, lower-case; `hive` if it is an ordinary Hive table."""
    return table.parameters.get(_PROVIDER, "hive").lower()


def format_of(table: HiveTable, partition: HivePartition | None = None) -> str | None:
    """The format of a table's files, or of a partition's; None if it is not one that Iceberg has.

    A partition of a Hive table is stored as its own descriptor says; a Spark data source has one format for all.
    """
    provider = provider_of(table)
    if provider != "hive":
        name = provider.upper()
        return name if name in (PARQUET, ORC, AVRO) else None
    return _SERDES.get(_class_name((partition or table).storage).lower())


def shown_format(table: HiveTable, partition: HivePartition | None = None) -> str:
    """What people call the format: the data source or the class of the SerDe."""
    provider = provider_of(table)
    return provider if provider != "hive" else _class_name((partition or table).storage) or "files of no known format"


def _class_name(storage: HiveStorage) -> str:
    return (storage.serde or storage.input_format).rsplit(".", 1)[-1]
