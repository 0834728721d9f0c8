"""Printing with click: the option for JSON, and the command group as a whole with click's own errors."""

from __future__ import annotations

import sys

import click

from mdmem.cli.printing import Unprinted, clean, emit, fail, give_up, interrupted, note, place, say, say_json, settled

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
        except BrokenPipeError:
            raise
        except OSError as error:
            if _of_echo(error):
                give_up(sys.stdout)
                raise Unprinted(error) from error
            raise

    return settled(work, as_json)


def _of_echo(error: OSError) -> bool:
    """Return whether it was click that could not print, a help page say."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "click.utils"


def _usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        say_json({"error": {"code": "usage", "message": error.format_message(), "hint": "mdmem --help"}})
    try:
        error.show(file=sys.stderr)
    except OSError:
        give_up(sys.stderr)
    return 2
