"""The filter options that recall, list and forget share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mdmem.recall.query import Filters
    from mdmem.store import Store

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = (
    click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be given again."),
    click.option("--kind", "kinds", multiple=True, metavar="KIND", help="memory, entity, session, task, message, agent, note."),
    click.option("--category", "categories", multiple=True, metavar="C", help="Only this category."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only notes with this tag; again: with all of them."),
    click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Only this scope."),
    click.option("--agent", "agents", multiple=True, metavar="AGENT", help="Only what this agent wrote."),
    click.option("--since", metavar="DATE", default="", help="Updated at or after: 2026-11-01, 7d, yesterday."),
    click.option("--until", metavar="DATE", default="", help="Updated at or before."),
    click.option("--status", "statuses", multiple=True, metavar="STATUS", help="Only this status; `any` for all."),
    click.option("--path", "paths", multiple=True, metavar="PREFIX", help="Only below this folder of the store."),
)


def filter_options(function: F) -> F:
    """Add every filter option to a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def filters_of(store: Store, given: dict[str, Any], *, retired: bool = False) -> Filters:
    """Return the Filters that the options name; takes its keys out of `given`. Raises UsageError for a bad date."""
    from mdmem.clock import parse_time
    from mdmem.recall.query import filters_from

    now = store.clock.now()
    since, until = given.pop("since"), given.pop("until")
    names = ("types", "kinds", "categories", "tags", "scopes", "agents", "statuses", "paths")
    options: dict[str, object] = {name: given.pop(name) for name in names}
    if options["statuses"] == ("any",):
        options["statuses"], retired = (), True
    options["since"] = parse_time(since, now) if since else None
    options["until"] = parse_time(until, now, end=True) if until else None
    options["retired"] = retired
    return filters_from(options)
