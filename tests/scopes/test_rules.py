"""Whose word counts on what an agent may read: the user's, and the store's where it narrows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mdmem.config import user_file
from mdmem.recall.select import agent_scopes, may_read
from mdmem.store import Store

SCOPES = ("shared", "project:x", "agent:bot", "user:ann")


@pytest.mark.parametrize(
    ("user", "store", "readable"),
    [
        (None, None, SCOPES),
        (["shared"], None, ("shared",)),
        (None, ["shared"], ("shared",)),
        (["shared"], ["*"], ("shared",)),  # a store widens nothing
        (["shared", "agent:bot"], ["shared", "user:ann"], ("shared",)),
        (["*"], ["project:*"], ("project:x",)),
        (["project:*"], ["project:x", "user:*"], ("project:x",)),
        ([], ["*"], ()),
        (["*"], [], ()),
    ],
)
def test_a_store_narrows_what_an_agent_may_read_and_never_widens_it(
    user: list[str] | None, store: list[str] | None, readable: tuple[str, ...], make_store: Callable[..., Store]
) -> None:
    made = make_store()
    if user is not None:
        user_file().parent.mkdir(parents=True, exist_ok=True)
        user_file().write_text(f"[agents.bot]\nscopes = {user!r}\n")
    if store is not None:
        with (made.root / ".mdmem.toml").open("a") as stream:
            stream.write(f"\n[agents.bot]\nscopes = {store!r}\n")
    patterns = agent_scopes(Store.open(made.root, cwd=made.root), "bot")
    assert tuple(scope for scope in SCOPES if may_read(scope, patterns)) == readable
