"""The tables of a REST catalog."""

from __future__ import annotations

from hms_iceberg.rest_client.planning import planner
from hms_iceberg.rest_client.rest_metastore import RestMetastore
from hms_iceberg.scan.tasks import TaskPlanner
from hms_iceberg.table import Table


class RestTable(Table):
    """A table whose scans the server plans, if server and user want that."""

    def _planner(self) -> TaskPlanner | None:
        metastore = self.metastore
        assert isinstance(metastore, RestMetastore)
        config = {**metastore.config(self._identifier), **metastore.channel.properties}  # the user's word comes first
        return planner(metastore.channel, self._identifier, config)
