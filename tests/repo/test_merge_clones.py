"""Clones of one note that meet at one remote, in any order: they end equal, and each word that nobody deleted is there."""

from __future__ import annotations

import os
import random

import pytest

from mdmem.notes.frontmatter import edit, parse
from mdmem.repo.merge import find_conflicts, merge, settle

HEAD = b"---\nid: mem-a\ntitle: Start\npriority: low\ntags:\n  - t0\n---\n\n"
START = HEAD + b"# Start\n\ns0 stays as it is.\n\n- item s1\n- item s2\n"
RUNS = int(os.environ.get("MDMEM_TEST_CLONES", "60"))


class Clone:
    """One machine: its text, and the remote's text that it last saw."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = START
        self.seen = START


class World:
    """The clones, the remote, and the ledger of what was written and what was deleted by someone."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clones = [Clone(name) for name in "abcd"]
        self.remote = START
        self.number = 0
        self.written: set[str] = {"s0", "s1", "s2"}
        self.deleted: set[str] = set()

    def word(self) -> str:
        self.number += 1
        self.written.add(f"s{self.number}n")
        return f"s{self.number}n"

    def change(self, clone: Clone) -> None:
        """Make one edit as a person or an agent would."""
        body = parse(clone.text).body
        parts = body.rstrip("\n").split("\n\n")
        at = self.rng.randrange(len(parts))
        inside = "<!-- mdmem" in "".join(parts)
        kind = self.rng.choice(("add", "item", "extend", "delete", "tag", "untag", "priority", "title", "settle"))
        if kind == "add":
            parts.insert(at + 1, f"Note {self.word()} of {clone.name}.")
        elif kind == "item":
            parts.append(f"- item {self.word()}")
        elif kind == "extend" and not inside and not parts[at].startswith("#"):
            parts[at] += f" And {self.word()}."
        elif kind == "delete" and len(parts) > 2 and not inside:
            self.deleted |= {word for word in self.written if word in parts[at].replace(".", " ").split()}
            del parts[at]
        elif kind in ("tag", "untag"):
            tags = parse(clone.text).fields.get("tags", [])
            assert isinstance(tags, list)
            tags = [*tags, f"t{self.rng.randrange(9)}"] if kind == "tag" else tags[1:]
            clone.text = edit(clone.text, {"tags": sorted({str(tag) for tag in tags})})
        elif kind in ("priority", "title"):
            clone.text = edit(clone.text, {kind: self.rng.choice(("low", "mid", "high", "no", "#1"))})
        elif kind == "settle":
            for conflict in find_conflicts(clone.text)[:1]:
                dropped = [v.text for v in conflict.versions if v.number != 1]
                self.deleted |= {w for w in self.written for text in dropped if w in text.replace(".", " ").split()}
                clone.text = settle(clone.text, conflict.name, "1")
            return
        text = "\n\n".join(parts) + "\n"
        if text != body:
            clone.text = edit(clone.text, {}, body=text)

    def sync(self, clone: Clone) -> None:
        merged = merge(clone.seen, clone.text, self.remote).text
        assert merge(clone.seen, self.remote, clone.text).text == merged
        assert parse(merged).problem is None, merged.decode()
        self.remote = clone.text = clone.seen = merged


@pytest.mark.parametrize("seed", range(RUNS))
def test_clones_end_equal_and_lose_nothing(seed: int) -> None:
    world = World(seed)
    for _ in range(40):
        clone = world.rng.choice(world.clones)
        world.change(clone) if world.rng.random() < 0.65 else world.sync(clone)
    for clone in world.clones * 2:
        world.sync(clone)
    assert {clone.text for clone in world.clones} == {world.remote}
    text = world.remote.decode().replace(".", " ").split()
    assert not {word for word in world.written - world.deleted if word not in text}
    assert parse(world.remote).fields["id"] == "mem-a"
    # A conflict section never nests.
    depth = 0
    for line in world.remote.decode().split("\n"):
        depth += line.startswith("<!-- mdmem:conflict -->") - line.startswith("<!-- mdmem:conflict end")
        assert depth in (0, 1)
