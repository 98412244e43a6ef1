"""Commands that show a catalog and its tables: `list`, `describe`, `schema`, `spec`, `location`, `uuid`, `files`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import complete_table, on_catalog, on_table
from hms_iceberg.cli.output import Output, say, shown
from hms_iceberg.metastore import TableKind

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.spec.metadata.table_metadata import TableMetadata
    from hms_iceberg.table.table import Table

FILE_CONTENTS = ("data", "position deletes", "equality deletes")


@click.command("list")
@click.argument("parent", metavar="[NAMESPACE]", required=False)
@click.option("-l", "--long", "is_long", is_flag=True, help="Iceberg tables with sizes and ages; of all namespaces.")
@click.option(
    "--needs", is_flag=True, help="With --long: also what the maintenance service would do; reads each table."
)
@on_catalog
def list_(catalog: Catalog, out: Output, parent: str | None, is_long: bool, needs: bool) -> None:
    """List namespaces, or the Iceberg tables of one.

    Example: hms-iceberg list web --long
    """
    if needs and not is_long:
        raise click.UsageError("--needs is for --long")
    if is_long:
        _list_long(catalog, out, parent, needs)
        return
    found = catalog.list_tables(parent) if parent else catalog.list_namespaces()
    out.names(".".join(each) for each in found)


def _list_long(catalog: Catalog, out: Output, namespace: str | None, needs: bool) -> None:
    from hms_iceberg.maintenance.system import system_table

    if namespace is not None:
        catalog.load_namespace_properties(namespace)  # one that is missing is an error
    patterns = ("*" if namespace is None else f"{namespace}.*",)
    tables = [
        each
        for each in system_table(catalog, "tables", patterns).to_pylist()
        if each["kind"] == TableKind.ICEBERG or each["error"] is not None
    ]
    if needs:
        found: dict[str, list[str]] = {}
        for each in system_table(catalog, "maintenance", patterns).to_pylist():
            told = each["error"] or f"{each['action']}: {each['why']}"
            found.setdefault(_name(each), []).append(told)
        tables = [each | {"needs": found.get(_name(each), [])} for each in tables]
    if out.is_json:
        out.json(tables)
        return
    names = ("table", "rows", "data files", "delete files", "size", "average file", "snapshots", "last commit")
    out.rows((*names, "needs") if needs else names, map(_long_row, tables), null="-")
    for each in tables:
        if each["error"] is not None:
            say(f"Not told of: {_name(each)}: {each['error']}", err=True)


def _name(row: dict[str, Any]) -> str:
    return ".".join(each for each in (row["namespace"], row["table"]) if each is not None)


def _long_row(told: dict[str, Any]) -> list[Any]:
    from hms_iceberg.report.number_text import size

    sizes = [None if told[key] is None else size(told[key]) for key in ("bytes", "average_file_bytes")]
    committed = None if told["committed_at"] is None else f"{told['committed_at']:%Y-%m-%d %H:%M:%S}"
    counts = [told[key] for key in ("rows", "data_files", "delete_files")]
    row = [_name(told), *counts, *sizes, told["snapshots"], committed]
    return [*row, "; ".join(told["needs"])] if "needs" in told else row


@click.command()
@click.argument("identifier", metavar="NAMESPACE | DB.TABLE", shell_complete=complete_table)
@click.option("--entity", type=click.Choice(["any", "namespace", "table"]), default="any", show_default=True)
@on_catalog
def describe(catalog: Catalog, out: Output, identifier: str, entity: str) -> None:
    """Describe a namespace or a table.

    Example: hms-iceberg describe web.visits
    """
    if entity == "namespace" or (entity == "any" and "." not in identifier):
        out.pairs(catalog.load_namespace_properties(identifier))
        return
    if "." not in identifier:
        raise click.BadParameter(f"expected DB.TABLE, got {identifier!r}", param_hint="identifier")
    table = catalog.load_table(identifier)
    data = {
        "identifier": list(table.name()),
        "metadata_location": table.metadata_location,
        "metadata": table.metadata.model_dump(),
    }
    out.pairs(_description(table), data)


def _description(table: Table) -> dict[str, Any]:
    from hms_iceberg.spec.values.datetimes import format_milliseconds

    metadata = table.metadata
    current = table.current_snapshot()
    return {
        "Table": ".".join(table.name()),
        "Table format version": metadata.format_version,
        "Table UUID": metadata.table_uuid,
        "Location": metadata.location,
        "Metadata location": table.metadata_location,
        "Last updated": format_milliseconds(metadata.last_updated_ms),
        f"Schema (id {metadata.current_schema_id})": [str(field) for field in table.schema().fields],
        "Partition spec": [str(field) for field in table.spec().fields] or "none",
        "Sort order": [str(field) for field in table.sort_order().fields] or "none",
        "Snapshots": len(metadata.snapshots),
        "Current snapshot": None if current is None else current.snapshot_id,
        **_totals(metadata),
        "Branches and tags": [f"{name}: {ref.snapshot_id}" for name, ref in sorted(metadata.refs.items())],
        "Properties": [f"{key}={value}" for key, value in sorted(metadata.properties.items())],
    }


def _totals(metadata: TableMetadata) -> dict[str, str]:
    """The totals of the current snapshot, if its summary has them."""
    current = metadata.current_snapshot()
    named = (("Rows", "total-records"), ("Data files", "total-data-files"), ("Delete files", "total-delete-files"))
    return {} if current is None else {name: current.summary[key] for name, key in named if current.summary[key]}


@click.command()
@on_table
def schema(table: Table, out: Output) -> None:
    """Show a table's columns: name, type, whether values are required, and doc.

    Example: hms-iceberg schema web.visits
    """
    if out.is_json:
        out.json(table.schema().model_dump())
        return
    rows = [(field.name, str(field.field_type), field.required, field.doc) for field in table.schema().fields]
    out.rows(("name", "type", "required", "doc"), rows)


@click.command()
@on_table
def spec(table: Table, out: Output) -> None:
    """Show a table's partition spec.

    Example: hms-iceberg spec web.visits
    """
    out.text(str(table.spec()), table.spec().model_dump())


@click.command()
@on_table
def location(table: Table, out: Output) -> None:
    """Show where a table's files are.

    Example: hms-iceberg location web.visits
    """
    out.text(shown(table.location()), table.location())


@click.command()
@on_table
def uuid(table: Table, out: Output) -> None:
    """Show a table's UUID.

    Example: hms-iceberg uuid web.visits
    """
    found = table.metadata.table_uuid
    text = "missing" if found is None else str(found)
    out.text(text, {"uuid": text})


@click.command()
@on_table
@click.option("--snapshot", "snapshot_id", type=int, metavar="ID", help="Of this snapshot [default: the current one].")
@click.option("--history", is_flag=True, help="Of all snapshots.")
def files(table: Table, out: Output, snapshot_id: int | None, history: bool) -> None:
    """List the data and delete files of a table.

    Example: hms-iceberg files web.visits --output json
    """
    if history and snapshot_id is not None:
        raise click.UsageError("--snapshot and --history exclude each other")
    current = table.current_snapshot()
    chosen = [each.snapshot_id for each in table.snapshots()] if history else [snapshot_id]
    if current is None and not history and snapshot_id is None:
        chosen = []
    rows = []
    for each in chosen:
        shown_id = each if each is not None or current is None else current.snapshot_id
        found = table.inspect.files(each).select(["content", "record_count", "file_size_in_bytes", "file_path"])
        for file in found.to_pylist():
            content = FILE_CONTENTS[file["content"]]
            rows.append((shown_id, content, file["record_count"], file["file_size_in_bytes"], file["file_path"]))
    out.rows(("snapshot_id", "content", "records", "bytes", "file_path"), rows)
