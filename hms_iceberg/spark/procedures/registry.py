"""The table of procedures. Whoever builds one adds it here."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.spark.procedures.changelog_view import CREATE_CHANGELOG_VIEW
from hms_iceberg.spark.procedures.maintenance import (
    COMPUTE_PARTITION_STATS,
    COMPUTE_TABLE_STATS,
    EXPIRE_SNAPSHOTS,
    REMOVE_ORPHAN_FILES,
)
from hms_iceberg.spark.procedures.migration import ADD_FILES, MIGRATE, REGISTER_TABLE, SNAPSHOT
from hms_iceberg.spark.procedures.procedure import Procedure
from hms_iceberg.spark.procedures.rewriting_files import (
    REWRITE_DATA_FILES,
    REWRITE_MANIFESTS,
    REWRITE_POSITION_DELETE_FILES,
    REWRITE_TABLE_PATH,
)
from hms_iceberg.spark.procedures.snapshots import (
    ANCESTORS_OF,
    CHERRYPICK_SNAPSHOT,
    FAST_FORWARD,
    PUBLISH_CHANGES,
    ROLLBACK_TO_SNAPSHOT,
    ROLLBACK_TO_TIMESTAMP,
    SET_CURRENT_SNAPSHOT,
)

PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        ROLLBACK_TO_SNAPSHOT,
        ROLLBACK_TO_TIMESTAMP,
        SET_CURRENT_SNAPSHOT,
        CHERRYPICK_SNAPSHOT,
        PUBLISH_CHANGES,
        FAST_FORWARD,
        ANCESTORS_OF,
        REGISTER_TABLE,
        EXPIRE_SNAPSHOTS,
        REWRITE_MANIFESTS,
        REWRITE_DATA_FILES,
        REWRITE_POSITION_DELETE_FILES,
        REWRITE_TABLE_PATH,
        REMOVE_ORPHAN_FILES,
        COMPUTE_TABLE_STATS,
        COMPUTE_PARTITION_STATS,
        MIGRATE,
        SNAPSHOT,
        ADD_FILES,
        CREATE_CHANGELOG_VIEW,
    )
}
