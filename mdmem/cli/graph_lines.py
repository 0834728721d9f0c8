"""How answers of the graph look on a terminal, and the options that its commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mdmem.cli.output import clean

F = TypeVar("F", bound=Callable[..., Any])


def line_of(row: dict[str, Any]) -> str:
    """Return `[type] title | status | priority | date | id` of a note."""
    parts = [clean(row["title"]), row.get("status") or "", row.get("priority") or "", (row.get("updated") or "")[:10]]
    shown = " | ".join(part for part in parts if part)
    return f"[{clean(row.get('type') or row.get('kind') or '')}] {clean(shown)} | {clean(row.get('id') or row['path'])}"


def way_of(steps: list[dict[str, Any]]) -> str:
    """Return a way as text: `a -blocked_by-> b <-part_of- c`."""
    text = steps[0]["from"] if steps else ""
    for step in steps:
        text += f" -{step['rel']}-> {step['to']}" if step["forward"] else f" <-{step['rel']}- {step['to']}"
    return clean(text)


def rel_option(function: F) -> F:
    """Add --rel-type."""
    option = click.option("--rel-type", "rel", multiple=True, metavar="REL", help="Only this relation; may be given again.")
    return option(function)


def types_option(function: F) -> F:
    """Add --types."""
    option = click.option("--types", metavar="TYPE,…", default="", help="Only these types of entity, comma-separated.")
    return option(function)


def split(text: str) -> list[str]:
    """Return the parts of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]
