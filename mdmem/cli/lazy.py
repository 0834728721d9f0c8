"""A group of commands that are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click

# Name of a command → (module:attribute, one-line help).
Table = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group of the commands in `listed`; those in `hidden_names`, which people know from elsewhere, work as well."""

    listed: ClassVar[Table]
    hidden_names: ClassVar[Table]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.listed)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = self.listed.get(name) or self.hidden_names.get(name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is answered with the names that are near it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*self.listed, *self.hidden_names], 3)
            if near and "mean" not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {' or '.join(near)}?", ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.listed.items()])
