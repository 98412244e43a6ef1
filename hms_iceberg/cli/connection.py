"""Options by which a command finds its catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

Command = TypeVar("Command", bound=Callable[..., Any])


def catalog_options(command: Command) -> Command:
    """Add `--catalog`, `--uri` and `--property` to a command."""
    for option in reversed(
        (
            click.option("--catalog", "catalog_name", metavar="NAME", help="A catalog of .pyiceberg.yaml."),
            click.option("--uri", metavar="URI", help="The metastore, such as thrift://host:9083."),
            click.option(
                "-p",
                "--property",
                "properties",
                multiple=True,
                metavar="KEY=VALUE",
                help="A property of the catalog, such as s3.endpoint=http://host:9000; may be repeated.",
            ),
        )
    ):
        command = option(command)
    return command


def open_catalog(catalog_name: str | None, uri: str | None, properties: tuple[str, ...]) -> Catalog:
    """The catalog that the options name.

    Raises:
        ConfigurationError: no URI is configured or given.
    """
    from hms_iceberg.catalog import load_catalog

    return load_catalog(catalog_name, uri=uri, **key_values(properties))


def key_values(texts: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping.

    Raises:
        click.BadParameter: a text without an equals sign.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected KEY=VALUE, got {text!r}")
        pairs[key.strip()] = value
    return pairs
