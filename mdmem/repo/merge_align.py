"""Brings the keys of three blocks to one place each, so that a key moved under `metadata:` is not taken for a deleted one."""

from __future__ import annotations

from dataclasses import replace

from mdmem.repo.merge_block import Block, Entry, with_children
from mdmem.repo.merge_record import find_entry, put_entry


def aligned(base: Block, ours: Block, theirs: Block, known: bool) -> tuple[Block, Block, Block]:
    """Return the blocks with each key at one place: a key that one side moved under `metadata:` has not been deleted."""
    blocks = [base, ours, theirs]
    if not any(block.find("metadata") for block in blocks):
        return base, ours, theirs
    if any(entry.children is None and entry.value != "" for block in blocks if (entry := block.find("metadata"))):
        return base, ours, theirs
    places = [_places(block) for block in blocks]
    for name in sorted(set().union(*places) - {"metadata"}):
        where = [place.get(name, "") for place in places]
        if "both" in where or len(set(where) - {""}) < 2:
            continue
        present = [place for place in where[1:] if place]
        target = present[0]
        if len(set(present)) == 2:
            moved = [place for place in present if place != where[0]]
            target = moved[0] if known and where[0] else "top"
        blocks = [_move(block, name, target) if place else block for block, place in zip(blocks, where, strict=True)]
    return blocks[0], blocks[1], blocks[2]


def _places(block: Block) -> dict[str, str]:
    places = {entry.name: "top" for entry in block.entries}
    metadata = block.find("metadata")
    for child in metadata.children or () if metadata else ():
        places[child.name] = "both" if child.name in places else "metadata"
    return places


def _move(block: Block, name: str, target: str) -> Block:
    top = block.find(name)
    entry = find_entry(block.entries, name)
    if entry is None or (target == "top") == (top is not None):
        return block
    entries = put_entry(block.entries, name, None)
    if target == "top":
        return replace(block, entries=(*entries, entry))
    metadata = block.find("metadata") or Entry("metadata", "metadata", (":",), {}, children=())
    new = with_children(metadata, (*(metadata.children or ()), entry), metadata.tail)
    return replace(block, entries=put_entry(entries, "metadata", new))
