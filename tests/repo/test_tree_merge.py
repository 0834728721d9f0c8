"""Merging whole trees: what it costs where both sides changed much."""

from __future__ import annotations

import time

from mdmem.repo import tree_merge
from mdmem.repo.git import Git
from mdmem.repo.moves import Side
from mdmem.repo.tree import Contents, Item

from .conftest import Clone


def test_the_work_on_many_changed_notes_grows_as_their_number_does(repo_clone: Clone) -> None:
    """All paths were sorted again for each one of them: two sides with 15,000 changed notes each took minutes."""
    git = Git(repo_clone.top)
    with Contents(git) as contents:
        base = tree_merge.Base(repo_clone.sh("rev-parse", "HEAD").strip())
        work = tree_merge._Work(git, contents, base, (Side(), Side()), None, lambda *_: ("", "", ""), True)
        for number in range(30_000):
            work.put(f"memories/n{number:06d}.md", Item("100644", f"{number:040d}"))
        start = time.process_time()
        settled = tree_merge._settled(work, base.rev)
        assert time.process_time() - start < 5.0
    assert list(settled) == sorted(settled) and len(settled) == 30_000
