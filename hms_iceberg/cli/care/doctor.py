"""`hms-iceberg doctor`: is all well with this machine, the metastore and the storage?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import catalog_options, open_catalog
from hms_iceberg.cli.output import OUTPUT_OPTION, Output

if TYPE_CHECKING:
    from hms_iceberg.maintenance.doctor import Diagnosis

_MARKS = {"good": "ok ", "doubtful": "?? ", "bad": "!! "}


@click.command()
@catalog_options
@OUTPUT_OPTION
def doctor(catalog_name: str | None, uri: str | None, properties: tuple[str, ...], output: str) -> None:
    """Check what is around the tables: versions, Java, the metastore and its settings, locks, storage, clocks.

    Without a metastore it checks this machine only. The exit code is 1 if something does not work.

    Example: hms-iceberg doctor --uri thrift://metastore:9083
    """
    from hms_iceberg.config import known_catalogs as configured_catalogs
    from hms_iceberg.maintenance.doctor import Health, examine_surroundings

    out, found = Output(output), []
    is_named = bool(catalog_name or uri or properties or configured_catalogs())
    with open_catalog(catalog_name, uri, properties, patient=True) if is_named else nullcontext() as catalog:
        for diagnosis in examine_surroundings(catalog):
            found.append(diagnosis)
            if not out.is_json:
                _tell(diagnosis)
    if out.is_json:
        out.json([_json(each) for each in found])
    if any(each.state is Health.BAD for each in found):
        raise click.exceptions.Exit(1)


def _tell(diagnosis: Diagnosis) -> None:
    click.echo(f"{_MARKS[diagnosis.state]} {diagnosis.subject}: {diagnosis.said}")
    if diagnosis.remedy is not None:
        click.echo(f"    {diagnosis.remedy}")


def _json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {**asdict(diagnosis), "state": str(diagnosis.state)}
