"""`hms-iceberg create`, `register`, `rename` and `drop`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import complete_table, key_values, on_catalog
from hms_iceberg.cli.output import Output
from hms_iceberg.cli.suggestions import SuggestingGroup
from hms_iceberg.errors import InvalidPartitionSpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
    from hms_iceberg.spec.schema import Schema

_TERM = re.compile(r"(?P<transform>\w+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<column>[^(),]+?)\s*\)")


@click.group(cls=SuggestingGroup)
def create() -> None:
    """Create a namespace or a table.

    Example: hms-iceberg create namespace web
    """


@click.group(cls=SuggestingGroup)
def drop() -> None:
    """Drop a namespace or a table.

    Example: hms-iceberg drop table web.visits
    """


@create.command("namespace")
@click.argument("identifier", metavar="NAMESPACE")
@click.option("--namespace-property", "own", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@on_catalog
def create_namespace(catalog: Catalog, out: Output, identifier: str, own: tuple[str, ...]) -> None:
    """Create a namespace.

    Example: hms-iceberg create namespace web --namespace-property location=s3://lake/web
    """
    catalog.create_namespace(identifier, key_values(own))
    out.text(f"Created namespace: {identifier}", {"created": identifier})


@create.command("table")
@click.argument("identifier", metavar="DB.TABLE", shell_complete=complete_table)
@click.option("--column", "columns", multiple=True, metavar="NAME:TYPE[!]", help="May be repeated; ! for required.")
@click.option(
    "--like",
    "sample",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the columns of a Parquet, Arrow, CSV or JSON file.",
)
@click.option("--partition-by", "terms", multiple=True, metavar="TERM", help="Such as 'day(at)'; may be repeated.")
@click.option("--location", help="Where its files go [default: below the namespace's location].")
@click.option("--table-property", "own", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@on_catalog
def create_table(
    catalog: Catalog,
    out: Output,
    identifier: str,
    columns: tuple[str, ...],
    sample: Path | None,
    terms: tuple[str, ...],
    location: str | None,
    own: tuple[str, ...],
) -> None:
    """Create an empty table.

    TYPE is an Iceberg type without columns of its own, such as long, string, decimal(9,2) or timestamptz.

    Example: hms-iceberg create table web.visits --column 'id:long!' --column at:timestamptz --partition-by 'day(at)'
    """
    if bool(columns) == (sample is not None):
        raise click.UsageError("Give the columns either by --column or by --like.")
    properties = key_values(own)
    schema = _schema_of(columns) if sample is None else _schema_like(sample, properties)
    spec = _spec_of(terms, schema, identifier)
    table = catalog.create_table(identifier, schema, location, partition_spec=spec, properties=properties)
    data = {"created": identifier, "location": table.location(), "metadata_location": table.metadata_location}
    out.text(f"Created table: {identifier}", data)


def _schema_of(columns: tuple[str, ...]) -> Schema:
    from hms_iceberg.spec.data_types import NestedField
    from hms_iceberg.spec.schema import Schema
    from hms_iceberg.spec.schema_json import type_from_json

    fields = []
    for number, column in enumerate(columns, start=1):
        name, colon, kind = column.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"expected NAME:TYPE, got {column!r}", param_hint="--column")
        text = kind.strip()
        column_type = type_from_json(text.removesuffix("!").strip())
        fields.append(NestedField(number, name.strip(), column_type, required=text.endswith("!")))
    return Schema(*fields)


def _schema_like(sample: Path, properties: dict[str, str]) -> Schema:
    from hms_iceberg.arrow.columns.arrow_schema import from_arrow
    from hms_iceberg.cli.tables.row_files import schema_of_file

    found: pa.Schema = schema_of_file(sample)
    return from_arrow(found, format_version=int(properties.get("format-version", "2")))


def _spec_of(terms: tuple[str, ...], schema: Schema, table: str) -> PartitionSpec:
    """The partition spec of terms such as `region`, `day(at)` and `bucket(16, id)`."""
    from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from hms_iceberg.spec.transforms.partition_transforms import UnknownTransform, transform_of_sql
    from hms_iceberg.updates.partition_spec import default_name

    fields = []
    for number, term in enumerate(terms, start=PARTITION_FIELD_ID_START):
        match = _TERM.fullmatch(term.strip())
        column, name = (match["column"], match["transform"]) if match else (term.strip(), "identity")
        transform = transform_of_sql(name, int(match["width"]) if match and match["width"] else None)
        if isinstance(transform, UnknownTransform):
            raise InvalidPartitionSpecError(
                f"Cannot create table {table}: {term!r} is no partition term. Expected a column, or such as "
                "year(c), month(c), day(c), hour(c), bucket(16, c), truncate(4, c)."
            )
        field = schema.find_field(column)
        fields.append(PartitionField(field.field_id, number, transform, default_name(column, transform)))
    return PartitionSpec(*fields)


@click.command()
@click.argument("from_identifier", metavar="DB.TABLE", shell_complete=complete_table)
@click.argument("to_identifier", metavar="NEW_DB.TABLE")
@on_catalog
def rename(catalog: Catalog, out: Output, from_identifier: str, to_identifier: str) -> None:
    """Give a table another name; its files stay where they are.

    Example: hms-iceberg rename web.visits web.views
    """
    catalog.rename_table(from_identifier, to_identifier)
    out.text(f"Renamed table from {from_identifier} to {to_identifier}", {"from": from_identifier, "to": to_identifier})


@click.command()
@click.argument("identifier", metavar="DB.TABLE", shell_complete=complete_table)
@click.argument("metadata_file", metavar="METADATA_FILE")
@click.option("--overwrite", is_flag=True, help="Also if the name is an Iceberg table's, which then is this one.")
@on_catalog
def register(catalog: Catalog, out: Output, identifier: str, metadata_file: str, overwrite: bool) -> None:
    """Make a metadata file the table of a name; nothing is copied.

    Example: hms-iceberg register web.visits s3://bucket/visits/metadata/00007-1f0c.metadata.json
    """
    table = catalog.register_table(identifier, metadata_file, overwrite)
    snapshot = table.current_snapshot()
    values = {"table": identifier, "snapshot_id": snapshot.snapshot_id if snapshot else None}
    out.text(f"Registered table {identifier} of {metadata_file}", values)


@drop.command("namespace")
@click.argument("identifier", metavar="NAMESPACE")
@on_catalog
def drop_namespace(catalog: Catalog, out: Output, identifier: str) -> None:
    """Drop an empty namespace.

    Example: hms-iceberg drop namespace web
    """
    catalog.drop_namespace(identifier)
    out.text(f"Dropped namespace: {identifier}", {"dropped": identifier})


@drop.command("table")
@click.argument("identifier", metavar="DB.TABLE", shell_complete=complete_table)
@click.option("--purge", is_flag=True, help="Delete all of its files too.")
@on_catalog
def drop_table(catalog: Catalog, out: Output, identifier: str, purge: bool) -> None:
    """Drop a table; its files stay, unless --purge is given.

    Example: hms-iceberg drop table web.visits --purge
    """
    catalog.drop_table(identifier, purge_requested=purge)
    out.text(
        f"Dropped table: {identifier}{' (its files too)' if purge else ''}", {"dropped": identifier, "purged": purge}
    )
