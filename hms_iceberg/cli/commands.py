"""All commands by subject, with module and one line of help each, so that listing them imports none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """The module of a command, and its help in a line."""

    home: str
    attribute: str
    help: str


def _of(room: str, **texts: str) -> dict[str, Entry]:
    """Commands of one module, by names with underscores."""
    return {
        name.strip("_").replace("_", "-"): Entry(f"hms_iceberg.cli.{room}", name, text) for name, text in texts.items()
    }


SUBJECTS: dict[str, dict[str, Entry]] = {
    "Tables": {
        **_of(
            "tables.browse",
            list_="List namespaces, or the tables of one.",
            describe="Describe a namespace or a table.",
            schema="Show a table's columns.",
            spec="Show a table's partition spec.",
            location="Show where a table's files are.",
            uuid="Show a table's UUID.",
            files="List the files of a table.",
        ),
        **_of("tables.scan_rows", scan="Show rows of a table, or write them to a file."),
        **_of("tables.scan_rows", append="Append the rows of files to a table."),
        **_of("ingest.ingest", ingest="Apply the events of Kafka topics to tables, exactly once."),
        **_of("tables.show_properties", properties="Look at and change properties."),
        **_of(
            "tables.define",
            create="Create a namespace or a table.",
            register="Make a metadata file the table of a name.",
            rename="Give a table another name.",
            drop="Drop a namespace or a table.",
        ),
    },
    "Snapshots": {
        **_of(
            "snapshots.history",
            history="List the snapshots of a table.",
            rollback="Go back to an earlier snapshot.",
        ),
        **_of(
            "snapshots.branches_and_tags",
            list_refs="List branches and tags.",
            branch="Create, remove and list branches.",
            tag="Create, remove and list tags.",
        ),
        **_of("snapshots.diff", diff="Tell what changed between two snapshots."),
    },
    "Maintenance": {
        **_of("care.maintain", report="Show pictures of tables, or write them to an HTML page."),
        **_of("care.check", check="Check the metadata of tables against their files."),
        **_of("care.repair", repair="Repair a damaged table as far as that is safe."),
        **_of("care.forget", forget="Forget rows in every version of a table, with proof."),
        **_of("care.maintain", maintain="Look after many tables: once, or as a service."),
        **_of("care.upgrade", upgrade="Upgrade a table's format; rehearse what its readers make of it."),
        **_of(
            "care.table_care",
            compute_partition_stats="Write statistics of a table's partitions.",
            compute_table_stats="Count the distinct values of a table's columns.",
            convert_equality_deletes="Turn equality deletes into position deletes or vectors.",
            expire_snapshots="Remove old snapshots and the files that only they need.",
            remove_dangling_deletes="Remove delete files that apply to nothing.",
            remove_orphan_files="Delete files that no table refers to.",
            rewrite_data_files="Make few large files of many small ones; sort rows; apply deletes.",
            rewrite_manifests="Make few large manifests of many small ones.",
            rewrite_table_path="Rewrite a table's paths, so that a copy of it is a table.",
            rewrite_position_deletes="Put position deletes together, or into vectors.",
            rotate_keys="Give an encrypted table a new key above those of its files.",
        ),
    },
    "Spark": {
        **_of("servers.serve", sql="Run SQL: given, from files, or at a prompt."),
        **_of(
            "servers.serve",
            connect="Serve clients of Spark Connect.",
            thriftserver="Serve JDBC and ODBC clients.",
            compile_bridge="Compile the bridge ahead, such as in an image.",
        ),
    },
    "Migration": _of(
        "migration.migrate_table",
        migrate="Turn Hive tables into Iceberg tables, in place.",
        rollback_migration="Turn a migrated table back into the Hive table it was.",
        verify="Compare an Iceberg table with a Hive table.",
    ),
    "Metastore": {
        **_of("care.check", doctor="Look at machine, metastore, storage, locks and clocks."),
        **_of("servers.embedded_metastore", locks="Look at the metastore's locks; release one of a dead holder."),
        **_of("servers.rest", rest="Serve the Iceberg REST protocol in front of the metastore."),
        **_of("servers.embedded_metastore", metastore="Start, stop and look at an embedded Hive Metastore."),
    },
    "This program": {
        **_of("docs", docs="Read the guides, on the terminal or as a page with search."),
        **_of("completion", completion="Print what makes a shell complete commands.", version="Print the version."),
        **_of("demo", demo="Show everything on real data, with a metastore of its own."),
    },
}

COMMANDS: dict[str, Entry] = {name: entry for commands in SUBJECTS.values() for name, entry in commands.items()}
