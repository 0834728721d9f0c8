"""What became of the notes between two dates, from git history at both: no snapshot is needed beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mdmem.clock import parse_time, read_stamp, stamp
from mdmem.errors import NotFound, UsageError, typed
from mdmem.graph.nodes import ENDED, THINGS, WAITING, ready
from mdmem.graph.states import State, states, tree
from mdmem.recall.select import agent_scopes, unreadable

if TYPE_CHECKING:
    from mdmem.store import Store

STALE_DAYS = 30
LIMIT = 10
# Statuses of work that somebody should be at.
OPEN = ("open", "claimed", "active", *WAITING)


@dataclass(frozen=True)
class End:
    """One end of the window: what was asked, the commit (None: before the first one), and the moment."""

    text: str
    rev: str | None
    moment: datetime

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"asked": self.text, "rev": self.rev, "date": stamp(self.moment)}


@dataclass
class Diff:
    """What differs between two commits. Each entry holds the note as it stood last."""

    start: End
    end: End
    new: list[dict[str, Any]] = field(default_factory=list)
    gone: list[dict[str, Any]] = field(default_factory=list)
    moved: list[dict[str, Any]] = field(default_factory=list)
    status: list[dict[str, Any]] = field(default_factory=list)
    blocked: list[dict[str, Any]] = field(default_factory=list)
    done: list[dict[str, Any]] = field(default_factory=list)
    active: list[dict[str, Any]] = field(default_factory=list)
    stale: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing happened in the window."""
        return not (self.new or self.gone or self.moved or self.status or self.active)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "from": self.start.as_dict(),
            "to": self.end.as_dict(),
            "empty": self.empty,
            "new": self.new,
            "gone": self.gone,
            "moved": self.moved,
            "status_changes": self.status,
            "newly_blocked": self.blocked,
            "newly_done": self.done,
            "most_changed": self.active,
            "stale": self.stale,
            "counts": self.counts,
        }


def end_of(store: Store, text: str, *, last: bool) -> End:
    """Return the end of a window for a person's date or revision. A bare day as the first end means its beginning, as the
    last its end. Raises NotFound for neither date nor revision."""
    from mdmem.repo.history import rev_at

    now = store.clock.now()
    try:
        moment = parse_time(text, now, end=last)
    except UsageError:
        rev = store.git.rev(text)
        if rev is None:
            hint = "write 2026-11-30, 7d, yesterday, or a commit id"
            raise NotFound(f"no such date or revision: {text!r}", hint=hint) from None
        done = store.git.run("show", "-s", "--format=%ct", "--end-of-options", rev, read=True)
        return End(text, rev, datetime.fromtimestamp(int(done.text().strip() or 0), now.tzinfo))
    # The beginning of a window is how things stood just before it.
    return End(text, rev_at(store.git, moment if last else moment - timedelta(seconds=1)), moment)


def diff(
    store: Store,
    start: str,
    end: str = "now",
    *,
    kinds: Sequence[str] = THINGS,
    types: Sequence[str] = (),
    limit: int = LIMIT,
    stale_days: float = STALE_DAYS,
) -> Diff:
    """Return what differs between two dates or revisions; a window in which nothing happened gives an empty answer.

    Only what is committed counts. `limit`: entries of `most changed` and `stale`, 0 for all. Raises NotFound, UsageError,
    GitFailed."""
    ready(store)
    first, last = end_of(store, start, last=False), end_of(store, end, last=True)
    if first.moment > last.moment:
        raise UsageError(f"{start} lies after {end}", hint=typed("mdmem", "graph", "diff", end, start))
    out = Diff(first, last)
    patterns = agent_scopes(store)
    hidden = unreadable(store)

    def seen(found: list[State]) -> list[State]:
        return [s for s in found if s.key not in hidden and s.path not in hidden and (not types or s.type in types)]

    old_tree, new_tree = tree(store, first.rev), tree(store, last.rev)
    after = seen(states(store, new_tree, kinds, patterns))
    touched = {path: blob for path, blob in old_tree.items() if new_tree.get(path) != blob}
    before = seen(states(store, touched, kinds, patterns))
    changed = [state for state in after if old_tree.get(state.path) != new_tree[state.path]]
    pairs = _paired(store, first.rev, last.rev, before, changed)
    for old, new in pairs:
        _compare(out, old, new)
    out.counts = {
        "status": dict(sorted(Counter(state.status or "(none)" for state in after).items())),
        "priority": dict(sorted(Counter(state.priority or "(none)" for state in after).items())),
        "kind": dict(sorted(Counter(state.kind for state in after).items())),
    }
    out.active = _most_changed(store, first.rev, last.rev, after)[: limit or None]
    out.stale = _stale(after, {s.key for s in changed}, last.moment, stale_days)[: limit or None]
    return out


def _paired(
    store: Store, old_rev: str | None, new_rev: str | None, before: list[State], after: list[State]
) -> list[tuple[State | None, State | None]]:
    """Return (then, now) of each note that differs: the same id, else the same path, else a rename that git sees."""
    left = {state.path: state for state in before}
    by_id = {state.id: state for state in reversed(before) if state.id}
    renamed: dict[str, str] = {}
    here = {state.path for state in after}
    if old_rev and new_rev and old_rev != new_rev and set(left) - here and here - set(left):
        from mdmem.repo.history import diff_trees

        found = diff_trees(store.git, old_rev, new_rev)
        renamed = {entry.path: entry.old for entry in found if entry.status == "R"}
    out: list[tuple[State | None, State | None]] = []
    for now in after:
        old_path = renamed.get(store.to_git(now.path), "")
        then = by_id.get(now.id) if now.id else None
        if then is None:
            then = left.get(now.path) or left.get(store.from_git(old_path) or "" if old_path else "")
            # Git takes a likeness of text for a rename; two ids are two notes.
            if then is not None and then.id and now.id and then.id != now.id:
                then = None
        if then is not None and left.pop(then.path, None) is None:
            then = None
        out.append((then, now))
    out += [(then, None) for then in left.values()]
    return out


def _compare(out: Diff, old: State | None, new: State | None) -> None:
    if new is None:
        assert old is not None
        out.gone.append(old.brief())
        return
    if old is None:
        out.new.append(new.brief())
    elif old.path != new.path:
        out.moved.append({**new.brief(), "was": old.path})
    was = old.status if old is not None else ""
    if old is not None and was != new.status:
        out.status.append({**new.brief(), "was": was})
    if new.status in WAITING and was not in WAITING:
        out.blocked.append({**new.brief(), "blocked_by": list(new.blocked_by)})
    if new.status in ENDED[:5] and was not in ENDED[:5]:
        out.done.append(new.brief())


def _most_changed(store: Store, old: str | None, new: str | None, after: list[State]) -> list[dict[str, Any]]:
    """Return the notes that most commits of the window touched, with the count; merges do not count."""
    from mdmem.repo.history import commits

    if new is None or old == new:
        return []
    span = f"{old}..{new}" if old else new
    known = {store.to_git(state.path): state for state in after}
    now_named = {path: path for path in known}
    counts: Counter[str] = Counter()
    dates: dict[str, str] = {}
    for commit in commits(store.git, "--no-merges", "--end-of-options", span):
        for entry in commit.entries:
            path = now_named.get(entry.path)
            if path is None:
                continue
            counts[path] += 1
            dates.setdefault(path, commit.date)
            if entry.old and entry.status == "R":
                now_named.setdefault(entry.old, path)
    ranked = sorted(counts, key=lambda path: (-counts[path], path))
    return [{**known[path].brief(), "commits": counts[path], "last": dates[path]} for path in ranked]


def _stale(after: list[State], changed: Collection[str], moment: datetime, days: float) -> list[dict[str, Any]]:
    """Return open work that nobody touched for `days` before the window's end, longest first; what changed in the window
    is not stale, whatever its own date says."""
    out = []
    for state in after:
        if state.status not in OPEN or state.key in changed:
            continue
        updated = read_stamp(state.updated)
        if updated is None or updated <= moment - timedelta(days=days):
            out.append(state)
    out.sort(key=lambda state: (state.updated, state.path))
    return [state.brief() for state in out]
