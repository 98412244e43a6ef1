"""Options by which a command finds its metastore and its Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hms_iceberg.cli.catalog_options import catalog_options, key_values, open_catalog
from hms_iceberg.cli.quiet_spark import quiet_spark
from hms_iceberg.errors import IcebergError

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

Command = TypeVar("Command", bound=Callable[..., Any])


def spark_options(command: Command) -> Command:
    """Add the catalog's options, `--master` and `--conf` to a command."""
    conf = click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of Spark, such as spark.driver.memory=4g; may be repeated.",
    )
    master = click.option("--master", help="Where Spark runs, such as spark://host:7077.  [default: local[*]]")
    return catalog_options(master(conf(command)))


@contextmanager
def spark_on_catalog(
    name: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    master: str | None,
    settings: tuple[str, ...],
    own_settings: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Iterator[Any]:
    """The SparkSession that the options describe; a quiet one keeps its log to itself.

    Raises:
        MetastoreUnavailableError: nobody answers at the metastore's address.
    """
    from hms_iceberg.spark.servers import spark_session

    with open_catalog(catalog_name, uri, properties) as catalog:
        found = dict(catalog.properties)
        if "warehouse" not in found and "spark.sql.warehouse.dir" not in key_values(settings):
            found.update(_warehouse(catalog))
    with ExitStack() as stack:
        session = spark_session(found, {**(own_settings or {}), **key_values(settings)}, name, master)
        with quiet_spark() if quiet else nullcontext():
            spark = stack.enter_context(session)
        yield spark


def _warehouse(catalog: Catalog) -> dict[str, str]:
    """The metastore's own warehouse, where its database `default` is: Spark would take a folder of this machine."""
    try:
        location = catalog.load_namespace_properties("default").get("location")
    except IcebergError:  # a metastore may have no such database, or not show it to this user
        return {}
    return {"warehouse": location} if location else {}
