"""Entry point of the `hms-iceberg` command."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import catalog_options
from hms_iceberg.cli.commands import COMMANDS, SUBJECTS
from hms_iceberg.cli.output import FORM, Output, say
from hms_iceberg.cli.suggestions import SuggestingGroup
from hms_iceberg.errors import IcebergError
from hms_iceberg.printable import log_to_stderr

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


FIRST_STEPS = """\
Apache Iceberg tables on a Hive Metastore. Five commands to begin with:

  hms-iceberg demo                          See it work, in about a minute, with a metastore of its own.
  hms-iceberg doctor                        Check this machine, the metastore and the storage.
  hms-iceberg list [NAMESPACE]              List namespaces, or the tables of one.
  hms-iceberg sql                           Run SQL on Iceberg and Hive tables.
  hms-iceberg migrate DB.TABLE --dry-run    Check whether a Hive table can become an Iceberg table.

Say where the metastore is: --uri thrift://host:9083, or
  export PYICEBERG_CATALOG__DEFAULT__URI=thrift://host:9083

All commands: hms-iceberg --help      Guides: hms-iceberg docs"""


class LazyGroup(SuggestingGroup):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command; None if there is none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.home), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command. If its output is JSON, an error of this package is JSON as well, with exit code 1."""
        try:
            return super().invoke(ctx)
        except IcebergError as error:
            if ctx.meta.get(FORM) != "json" or ctx.params.get("verbose"):
                raise
            Output("json").json({"type": type(error).__name__, "message": str(error)})
            raise click.exceptions.Exit(1) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands, by subject, without importing any of them."""
        width = max(map(len, COMMANDS))
        for subject, commands in SUBJECTS.items():
            with formatter.section(subject):
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in sorted(commands.items())])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the name of a command without importing any of them, or an option."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=COMMANDS[name].help)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Show the log, and the whole traceback of an error.")
@catalog_options
@click.option("--output", type=click.Choice(["text", "json"]), help="How results are told.  [default: text]")
@click.version_option(package_name="hms_iceberg")
@click.pass_context
def cli(ctx: click.Context, verbose: bool, **defaults: object) -> None:
    """Apache Iceberg tables on a Hive Metastore.

    The options of the catalog and of the output may stand here, or after the command's name.
    """
    if verbose:
        log_to_stderr("INFO", "%(asctime)s %(levelname)s %(name)s: %(message)s")
    if ctx.invoked_subcommand is None:
        say(FIRST_STEPS)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line (by default the words of the process) and returns its exit code.

    An error of this package, or of the system, is shown as one line on standard error, with exit code 1; `--verbose`
    shows its traceback, and if JSON was asked for, an error of this package is JSON on standard output.

    Wrong usage ends with exit code 2, as click has it.
    """
    words = sys.argv[1:] if arguments is None else arguments
    with _ended_by_sigterm():
        return _run(words)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Lets SIGTERM end a command as an exception does, so that it gives back what it holds, locks among it; another one
    that comes meanwhile is not heeded."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    ends = False

    def end(*_: object) -> None:
        nonlocal ends
        if not ends:
            ends = True
            raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(words: list[str]) -> int:
    try:
        result = cli.main(args=words, prog_name="hms-iceberg", standalone_mode=False)
    except click.exceptions.Abort:
        say("Stopped.", err=True)
        return 130
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        say(text.getvalue().rstrip("\n"), err=True)
        return error.exit_code
    except (IcebergError, OSError) as error:  # those of the system are about files that the user named
        if _is_verbose(words):
            raise
        say(f"Error: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _is_verbose(words: list[str]) -> bool:
    """Whether `--verbose` stands before the command's name."""
    context = cli.make_context("hms-iceberg", list(words), resilient_parsing=True)
    return bool(context.params["verbose"])


if __name__ == "__main__":
    sys.exit(main())
