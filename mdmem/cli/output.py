"""Printing with click: the option for JSON, and the command group as a whole with click's own errors."""

from __future__ import annotations

import sys

import click

from mdmem.cli.printing import clean, emit, fail, interrupted, note, place, say, say_json, settled

__all__ = ["clean", "emit", "fail", "guarded", "json_option", "note", "place", "say", "say_json"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _wants_json(args: list[str]) -> bool:
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def guarded(group: click.Group, args: list[str]) -> int:
    """Run the command group; every outcome becomes an exit code of the documented kind."""
    as_json = _wants_json(args)

    def work() -> int:
        try:
            code = group.main(args, prog_name="mdmem", standalone_mode=False)
            return code if isinstance(code, int) else 0
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.ClickException as error:
            return _usage(error, as_json)
        except click.Abort:
            return interrupted(as_json)

    return settled(work, as_json)


def _usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        say_json({"error": {"code": "usage", "message": error.format_message(), "hint": "mdmem --help"}})
    error.show(file=sys.stderr)
    return 2
