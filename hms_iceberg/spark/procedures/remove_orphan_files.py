"""Files that nothing of a table names."""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.orphan_files import PrefixMismatch, remove_orphan_files
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row
from hms_iceberg.storage import FileInfo


def _remove_orphan_files(call: Call) -> list[Row]:
    workers = call.get("max_concurrent_deletes", 8)
    if workers <= 0:
        raise InvalidInputError(f"max_concurrent_deletes should have value > 0, value: {workers}")
    listed = call.get("file_list_view")  # the bridge has read it: paths, with the time of the last change
    result = remove_orphan_files(
        call.table(),
        older_than=call.milliseconds("older_than"),
        location=call.get("location"),
        dry_run=call.get("dry_run", False),
        equal_schemes=call.get("equal_schemes"),
        equal_authorities=call.get("equal_authorities"),
        prefix_mismatch_mode=call.get("prefix_mismatch_mode", PrefixMismatch.ERROR),
        workers=workers,
        files=None if listed is None else [FileInfo(path, 0, changed_ms) for path, changed_ms in listed],
    )
    return [(location,) for location in result.locations]


REMOVE_ORPHAN_FILES = Procedure(
    "remove_orphan_files",
    (
        TABLE,
        Parameter("older_than", "timestamp"),
        Parameter("location", "string"),
        Parameter("dry_run", "boolean"),
        Parameter("max_concurrent_deletes", "int"),
        Parameter("file_list_view", "string"),
        Parameter("equal_schemes", "map<string,string>"),
        Parameter("equal_authorities", "map<string,string>"),
        Parameter("prefix_mismatch_mode", "string"),
        Parameter("prefix_listing", "boolean"),  # folders are always listed by prefix here
        Parameter("stream_results", "boolean"),
    ),
    (Column("orphan_file_location", "string", nullable=False),),
    _remove_orphan_files,
)
