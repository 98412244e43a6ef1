"""Entry point of the `hms-iceberg` command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

import click

from hms_iceberg.cli.groups import SuggestingGroup
from hms_iceberg.errors import IcebergError


@dataclass(frozen=True)
class Entry:
    """Where a command lives and what the list of commands says of it, so that the list needs no import."""

    home: str
    attribute: str
    help: str


COMMANDS = {
    "demo": Entry("hms_iceberg.cli.demo", "demo", "Show everything on real data, with a metastore of its own."),
    "locks": Entry("hms_iceberg.cli.locks", "locks", "Look at the metastore's locks; release one of a dead holder."),
    "maintain": Entry("hms_iceberg.cli.maintain", "maintain", "Look after many tables: once, or as a service."),
    **{
        name: Entry("hms_iceberg.cli.table_care", name.replace("-", "_"), text)
        for name, text in (
            ("compute-partition-stats", "Write statistics of a table's partitions."),
            ("compute-table-stats", "Count the distinct values of a table's columns."),
            ("convert-equality-deletes", "Turn equality deletes into position deletes or vectors."),
            ("expire-snapshots", "Remove old snapshots and the files that only they need."),
            ("remove-dangling-deletes", "Remove delete files that apply to nothing."),
            ("remove-orphan-files", "Delete files that nothing of a table names."),
            ("rewrite-data-files", "Make few large files of many small ones; sort rows; apply deletes."),
            ("rewrite-manifests", "Make few large manifests of many small ones."),
            ("rewrite-position-deletes", "Put position deletes together, or into vectors."),
        )
    },
    "metastore": Entry("hms_iceberg.cli.metastore", "metastore", "Start, stop and look at an embedded Hive Metastore."),
    "migrate": Entry("hms_iceberg.cli.migrate", "migrate", "Turn a Hive table into an Iceberg table, in place."),
    "rollback-migration": Entry(
        "hms_iceberg.cli.migrate", "rollback_migration", "Turn a migrated table back into the Hive table it was."
    ),
}


class LazyGroup(SuggestingGroup):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None where there is none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.home), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Show the log, and the whole traceback of an error.")
@click.version_option(package_name="hms_iceberg")
def cli(verbose: bool) -> None:
    """Apache Iceberg tables on a Hive Metastore."""
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    An error of this package is shown as one line on standard error, with exit code 1; `--verbose` shows its traceback.
    Wrong usage ends with exit code 2, as click has it.

    Args:
        arguments: the words after the program's name; those of the process by default.
    """
    words = sys.argv[1:] if arguments is None else arguments
    verbose = any(word in ("-v", "--verbose") for word in _group_options(words))
    try:
        result = cli.main(args=words, prog_name="hms-iceberg", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except IcebergError as error:
        if verbose:
            raise
        click.echo(f"Error: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _group_options(words: list[str]) -> list[str]:
    """The options before the command's name."""
    for index, word in enumerate(words):
        if not word.startswith("-"):
            return words[:index]
    return words


if __name__ == "__main__":
    sys.exit(main())
