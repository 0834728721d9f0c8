"""The three-way merge of whole trees, done on objects alone: no work tree and no index is touched.

Symmetric: swapping the sides gives the same tree. A note is known by its id, else by its path followed through renames.
What one side deleted and the other edited stays, marked; two notes that end at one path, or two files with one id that
were made on different sides, become one; a file that cannot be merged is kept in both versions, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from heapq import heappop, heappush

from mdmem.repo.files_merge import merge_file, sibling
from mdmem.repo.git import Git
from mdmem.repo.merge import mark_deleted_conflict, merge
from mdmem.repo.moves import Side, follow, note_id
from mdmem.repo.own import is_note, unsafe
from mdmem.repo.tree import Contents, Delta, Item, blob_id, empty_tree, similar, tree

# Folders where two notes with one id are one note; elsewhere an `id` may be the user's own and mean something else.
LAYOUT = ("memories/", "entities/", "sessions/", "tasks/", "messages/", "claude/")
Deleter = Callable[[str, int], tuple[str, str, str]]


@dataclass(frozen=True)
class PathConflict:
    """What could not be decided at a path: `kind` is that of the note's conflict, or `two files` for both versions kept."""

    path: str
    kind: str
    field: str = ""


@dataclass
class TreeMerge:
    """What a merge did. `entries`: path -> entry (None: gone) where the result differs from the first commit.

    `moved`: a side's path -> where its note is now. `blocked`: what must not be decided here. `regenerate`: notes whose
    generated block must be made anew. `counts`: own files that each side had changed.
    """

    entries: dict[str, Item | None] = field(default_factory=dict)
    conflicts: list[PathConflict] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)
    regenerate: list[str] = field(default_factory=list)
    counts: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Base:
    """The common ancestor: a commit or tree, and what is different in it where several ancestors had to be merged.

    At the paths in `unknown` those could not be merged: nothing is known of what stood there.
    """

    rev: str
    overlay: dict[str, Delta] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()


@dataclass
class _Work:
    git: Git
    contents: Contents
    base: Base
    sides: tuple[Side, Side]
    now: datetime | None
    deleter: Deleter
    merge_code: bool
    out: TreeMerge = field(default_factory=TreeMerge)
    pieces: dict[str, list[Item]] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)  # the paths of `pieces` as a heap

    def put(self, path: str, item: Item) -> None:
        if path not in self.pieces:
            heappush(self.waiting, path)
        self.pieces.setdefault(path, []).append(item)


def merge_trees(
    git: Git,
    base: Base,
    one: str,
    two: str,
    contents: Contents,
    *,
    now: datetime | None = None,
    deleter: Deleter = lambda path, side: ("", "", ""),
    merge_code: bool = True,
) -> TreeMerge:
    """Return how the tree of commit `one` becomes the merge of `one` and `two`. Raises GitFailed.

    `deleter` tells (agent, device, date) of who deleted a path on side 0 or 1. Without `merge_code` a file that is no note
    and differs on both sides is `blocked`.
    """
    deltas = [_against(contents.changes(base.rev, side), base) for side in (one, two)]
    first, second = (follow(d, contents, partial(similar, git, base.rev, rev)) for d, rev in zip(deltas, (one, two)))
    work = _Work(git, contents, base, (first, second), now, deleter, merge_code)
    work.out.counts = (sum(map(is_note, deltas[0])), sum(map(is_note, deltas[1])))
    bases = {**second.base, **first.base}
    for path in sorted({*first.kept, *second.kept}):
        _old_path(work, path, bases[path])
    _new_paths(work)
    final = _settled(work, one)
    for path in sorted({*deltas[0], *deltas[1], *final}):
        have = deltas[0][path].new if path in deltas[0] else deltas[1][path].old if path in deltas[1] else None
        if not _same(final.get(path), have):
            work.out.entries[path] = final.get(path)
            if path in final and (why := unsafe(path)):
                work.out.blocked.append(f"{path!r} ({why})")
    return work.out


def _against(delta: dict[str, Delta], base: Base) -> dict[str, Delta]:
    """Return a delta against the base's commit as one against the base."""
    found = dict(delta)
    for path, change in base.overlay.items():
        found[path] = Delta(change.new, delta[path].new if path in delta else change.old)
    return {path: d for path, d in found.items() if not _same(d.old, d.new)}


def _same(one: Item | None, two: Item | None) -> bool:
    if one is None or two is None:
        return one is two
    return (one.mode, one.oid) == (two.mode, two.oid)


def _old_path(work: _Work, path: str, base: Item) -> None:
    """Decide on one note or file of the base."""
    one, two = (side.where(path, base) for side in work.sides)
    if one is None or two is None:
        left = one or two
        # A rename alone is no edit: the note is as it was, so the deletion stands.
        if left is None or (left[1].oid == base.oid and path not in work.base.unknown):
            return
        _edited_and_deleted(work, path, left, 0 if one is None else 1)
        return
    target = one[0] if one[0] == two[0] or two[0] == path else two[0] if one[0] == path else min(one[0], two[0])
    if path not in (one[0], two[0]) and one[0] != two[0]:
        work.out.notices.append(f"{path} was renamed to {one[0]} and to {two[0]}: it is now {target}")
    work.out.moved.update({one[0]: target, two[0]: target, path: target})
    work.put(target, _content(work, target, None if path in work.base.unknown else base, one[1], two[1]))


def _edited_and_deleted(work: _Work, path: str, left: tuple[str, Item], deleted_on: int) -> None:
    target, item = left
    work.out.moved[path] = target
    if not item.regular or not is_note(target):
        work.out.notices.append(f"{target} was deleted on one side and changed on the other: it stays")
        work.put(target, item)
        return
    data = mark_deleted_conflict(work.contents.of(item), *work.deleter(path, deleted_on))
    work.out.conflicts.append(PathConflict(target, "deleted"))
    work.put(target, Item(item.mode, blob_id(data, item.oid), data))


def _content(work: _Work, path: str, base: Item | None, one: Item, two: Item) -> Item:
    """Return the merge of two entries; a second version that must stay too is put beside it."""
    modes = {one.mode, two.mode} - ({base.mode} if base is not None else set())
    mode = min(modes) if modes else one.mode
    if one.oid == two.oid:
        return replace(one, mode=mode)
    if base is not None and base.oid in (one.oid, two.oid):
        return replace(two if one.oid == base.oid else one, mode=mode)
    if not (one.regular and two.regular) or not (is_note(path) or work.merge_code):
        work.out.blocked.append(path)
        return one
    old = work.contents.of(base) if base is not None and base.regular else None
    if is_note(path):
        merged = merge(old, work.contents.of(one), work.contents.of(two), path, now=work.now)
        work.out.conflicts += [PathConflict(path, conflict.kind, conflict.field) for conflict in merged.conflicts]
        if merged.regenerate:
            work.out.regenerate.append(path)
        return Item(mode, blob_id(merged.text, one.oid), merged.text)
    data = merge_file(work.git, old, work.contents.of(one), work.contents.of(two), path)
    if data is not None:
        return Item(mode, blob_id(data, one.oid), data)
    kept, other = sorted((one, two), key=lambda item: item.oid)
    beside = sibling(path, other.oid)
    work.put(beside, other)
    work.out.conflicts.append(PathConflict(path, "two files", beside))
    return replace(kept, mode=mode)


def _new_paths(work: _Work) -> None:
    """Decide on what each side made: one path twice, one id twice, or simply new."""
    one, two = (dict(side.added) for side in work.sides)
    for path in sorted({*one} & {*two}):
        work.put(path, _content(work, path, None, one.pop(path), two.pop(path)))
    ids = [_joinable(work, added) for added in (one, two)]
    for key in sorted({*ids[0]} & {*ids[1]}):
        paths = (ids[0][key], ids[1][key])
        target = min(paths)
        work.out.notices.append(f"{paths[0]} and {paths[1]} are one note ({key}): joined in {target}")
        work.out.moved.update(dict.fromkeys(paths, target))
        work.put(target, _content(work, target, None, one.pop(paths[0]), two.pop(paths[1])))
    for path, item in (*one.items(), *two.items()):
        work.put(path, item)


def _joinable(work: _Work, added: dict[str, Item]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for path, item in added.items():
        key = note_id(work.contents, path, item) if any(f"/{path}".find(f"/{top}") >= 0 for top in LAYOUT) else None
        if key:
            found.setdefault(key, []).append(path)
    return {key: paths[0] for key, paths in found.items() if len(paths) == 1}


def _settled(work: _Work, one: str) -> dict[str, Item]:
    """Return the entry of each touched path: one content each, and no file where a folder must be."""
    final: dict[str, Item] = {}
    while work.waiting:  # settling one path can put another version beside it, under a name of its own
        path = heappop(work.waiting)
        items = sorted({item.oid: item for item in work.pieces.pop(path)}.values(), key=lambda item: item.oid)
        kept = items[0]
        for item in items[1:]:
            kept = _content(work, path, None, kept, item)
        if path in final and final[path].oid != kept.oid:
            kept = _content(work, path, None, *sorted((final[path], kept), key=lambda item: item.oid))
        final[path] = kept
    gone = {p for side in work.sides for p in (*side.base, *side.added)} - {*final}
    return _no_file_as_folder(work, one, final, gone)


def _no_file_as_folder(work: _Work, one: str, final: dict[str, Item], gone: Iterable[str]) -> dict[str, Item]:
    fresh = [path for path in final if not any(path in side.base for side in work.sides)]
    if not fresh:
        return final
    everything = ({*tree(work.git, one)} - {*gone}) | {*final}
    folders = {path[:at] for path in everything for at in range(len(path)) if path[at] == "/"}
    for path in [path for path in final if path in folders]:
        item = final.pop(path)
        target = sibling(path, item.oid)
        work.out.notices.append(f"{path} is also a folder: the file is now {target}")
        work.out.moved[path] = target
        final[target] = item
    return final


# --- the base ------------------------------------------------------------------------------------


def merge_bases(git: Git, one: str, two: str) -> list[str]:
    """Return the best common ancestors of two commits, sorted; [] for unrelated histories."""
    done = git.run("merge-base", "--all", "--end-of-options", one, two, check=False, read=True)
    return sorted(done.text().split())


def find_base(git: Git, one: str, two: str, contents: Contents, bases: list[str] | None = None, depth: int = 0) -> Base:
    """Return the base to merge two commits with. Of several ancestors (a criss-cross) the first two are merged first."""
    if bases is None:
        bases = merge_bases(git, one, two)
    if not bases:
        return Base(empty_tree(one))
    if len(bases) == 1 or depth > 8:
        return Base(bases[0])
    below = find_base(git, bases[0], bases[1], contents, None, depth + 1)
    merged = merge_trees(git, below, bases[0], bases[1], contents)
    before = tree(git, bases[0])
    overlay = {path: Delta(before.get(path), item) for path, item in merged.entries.items()}
    return Base(bases[0], overlay, frozenset(conflict.path for conflict in merged.conflicts))
