"""Groups of commands that know what was meant."""

from __future__ import annotations

from difflib import get_close_matches

import click


class SuggestingGroup(click.Group):
    """A group that suggests the commands whose names come near an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names.

        Raises:
            UsageError: there is none; names those that come near.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx))
            if not near or "Did you mean" in error.format_message():  # newer versions of click suggest by themselves
                raise
            hint = f"Did you mean {' or '.join(map(repr, near))}?"
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from error
