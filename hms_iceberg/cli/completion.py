"""`hms-iceberg completion` and `version`."""

from __future__ import annotations

import click

from hms_iceberg.cli.output import OUTPUT_OPTION, Output, say

_PROGRAM = "hms-iceberg"
_VARIABLE = "_HMS_ICEBERG_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the line for a shell's start-up file that completes commands and options.

    Example: hms-iceberg completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())


@click.command()
@OUTPUT_OPTION
def version(output: str) -> None:
    """Print the version of this package.

    Example: hms-iceberg version
    """
    from importlib.metadata import version as version_of

    found = version_of("hms_iceberg")
    Output(output).text(found, {"version": found})
