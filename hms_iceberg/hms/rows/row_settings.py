"""Settings of a table's row, read from a catalog's properties, under the names that Iceberg and Hive give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.hms.connection.property_reader import PropertyReader


@dataclass(frozen=True)
class RowSettings:
    """How a table is shown in its row of the metastore.

    Attributes:
        max_value_length: longest parameter value or column type, in characters
            (`iceberg.hive.table-property-max-size`; 4000 for databases made before Hive 2.3). With 0, schema, spec,
            order and snapshot are not shown at all, and there is no limit for the rest.
        hive_engine: whether Hive itself shall read the tables (`iceberg.engine.hive.enabled`).
        local_time_zone: whether a timestamp with zone is shown as Hive 3's `timestamp with local time zone`
            (`hive.hive2-compatible=false`). Spark cannot parse that name, so it is not the default.
    """

    max_value_length: int = 32672
    hive_engine: bool = False
    local_time_zone: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RowSettings:
        """Reads them from a catalog's properties.

        Raises:
            ConfigurationError: a value that cannot be read; names the property.
        """
        reader = PropertyReader(properties)
        legacy = reader.integer("hive.table-property-max-size", cls.max_value_length)
        return cls(
            max_value_length=max(0, reader.integer("iceberg.hive.table-property-max-size", legacy)),
            hive_engine=reader.boolean("iceberg.engine.hive.enabled", False),
            local_time_zone=not reader.boolean("hive.hive2-compatible", True),
        )
