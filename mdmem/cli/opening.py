"""How a command opens its store, and the options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

import click

from mdmem.cli.output import clean, note
from mdmem.errors import UsageError
from mdmem.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def open_store(ctx: click.Context, need: str = "read", **options: Any) -> Store:
    """Return the store that this command line means; its notices go to stderr, those of now and, at the end, later ones."""
    obj = ctx.find_root().obj or {}
    store = Store.open(obj.get("directory"), need=need, options=options or None)
    say_notices(ctx, store)
    ctx.call_on_close(store.close)
    ctx.call_on_close(lambda: say_notices(ctx, store))
    return store


def say_notices(ctx: click.Context, store: Store) -> None:
    """Print what the store has to say and what was not printed yet."""
    said: set[str] = ctx.meta.setdefault("mdmem.said", set())
    for text in store.notices:
        if text not in said:
            said.add(text)
            note(f"note: {clean(text)}")


def stdin_text() -> str:
    """Return the text on stdin (UTF-8, or UTF-16 with its mark). Raises UsageError for other bytes: they are never guessed."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the text on stdin is not UTF-8", hint="iconv -f CODING -t UTF-8 FILE | mdmem …") from None


def examples(*lines: str) -> Callable[[F], F]:
    """Put two to four examples at the head of a command's help, below its first sentence."""

    def decorate(function: F) -> F:
        text = cleandoc(function.__doc__ or "")
        first, _, rest = text.partition("\n\n")
        shown = "\n".join("  " + line for line in lines)
        function.__doc__ = f"{first}\n\n\b\nExamples:\n{shown}\n\n{rest}".rstrip()
        return function

    return decorate
