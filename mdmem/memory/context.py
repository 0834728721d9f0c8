"""What a session should know before its first word: handoff, pinned notes, tasks, messages, and what belongs to the project.

Reads the catalog by SQL only; imports neither yaml, the search engine nor numpy unless files are newer than the catalog.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import datetime, timezone

from mdmem.memory.context_rows import CatalogRows, Row, fields_of, fresh_rows
from mdmem.memory.quoting import Block, Quote, block, head, shortened
from mdmem.recall.select import may_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# How much a type is worth at a session's start, other things equal.
_WORTH = {
    "preference": 1.0, "profile": 1.0, "decision": 1.0, "procedure": 0.9, "pattern": 0.9, "context": 0.8, "fact": 0.7,
    "case": 0.5, "event": 0.3,
}  # fmt: skip
# Types that concern every project of the user when they are shared.
_GENERAL = ("preference", "profile")
HANDOFF = "handoff"
_OPEN = ("open", "claimed", "active", "blocked", "waiting")
_URGENCY = {"critical": 0, "urgent": 0, "high": 1, "medium": 2, "normal": 2, "low": 3}
# Days after which a memory counts half as new.
_HALF = 45.0
# Memories looked at more closely, and those that are offered to the block.
_CANDIDATES, SHOWN = 120, 40


class Viewer:
    """Who looks: the store, the session's scope, agent and device, and files worked on lately."""

    def __init__(
        self,
        root: str,
        state_dir: str,
        scope: str,
        agent: str,
        device: str,
        owned: Sequence[str] = ("",),
        recent: Sequence[str] = (),
        patterns: Sequence[str] | None = None,
        claims: dict[str, str] | None = None,
        name: str = "",
    ) -> None:
        self.root, self.state_dir, self.scope = root, state_dir, scope
        self.agent, self.device, self.owned, self.recent = agent, device, list(owned), list(recent)
        # Scopes that this agent may read at all (see recall.select.agent_scopes); None: all.
        self.patterns = None if patterns is None else tuple(patterns)
        # {task id: claim} of what this device claimed (see team.claims).
        self.claims = claims or {}
        # Which of the user's stores this is, '' for the one that the session works with.
        self.name = name

    @property
    def project(self) -> str:
        """The project of the session, '' for none."""
        return self.scope[8:] if self.scope.startswith("project:") else ""

    @property
    def identity(self) -> str:
        """Return agent@device."""
        return f"{self.agent}@{self.device}"

    def sees(self, row: Row) -> bool:
        """Return whether a note's scope concerns this session: shared, the user's, this agent's, this project's."""
        scope = row.get("scope") or "shared"
        if not may_read(str(scope), self.patterns):
            return False
        kind, _, name = str(scope).partition(":")
        if kind == "agent":
            return name in (self.agent, f"{self.agent}@{self.device}")
        # Outside of any project everything that is the user's own may matter.
        return kind != "project" or not self.project or name == self.project


class _Look:
    """One store as it is looked through for a session: its catalog, the files that are newer, and which notes may be given."""

    def __init__(self, viewer: Viewer, now: datetime, own: bool, seen: Collection[str]) -> None:
        self.viewer, self.now, self.own, self.seen = viewer, now, own, seen
        self.catalog = CatalogRows(viewer.state_dir)
        fresh = fresh_rows(viewer.root, viewer.state_dir, viewer.owned)
        self.replaced = {row["path"] for row in fresh}
        self.arrived = [row for row in fresh if self.good(row)]

    def good(self, row: Row) -> bool:
        """Return whether a note may be given."""
        if row.get("rowid") is not None and row["path"] in self.replaced:
            return False
        if self.own and row.get("device") != self.viewer.device:
            return False
        return self.viewer.sees(row) and not _over(row, self.now) and key(row) not in self.seen

    def select(self, where: str, values: Sequence[object], order: str, limit: int) -> list[Row]:
        """Return the notes of the catalog that fit and may be given."""
        return [row for row in self.catalog.notes(where, values, order, limit) if self.good(row)]

    def quote(self, row: Row, section: str, limit: int = 600) -> Quote:
        """Return a note as a quote; one of another store says so in its path."""
        text = shortened(str(row.get("summary") or "") or self.catalog.text(row), limit)
        path = f"{self.viewer.name}:{row['path']}" if self.viewer.name else str(row["path"])
        return Quote(str(row.get("id") or ""), path, section, head({**row, "path": path}), text, str(row.get("title") or ""))


def session_context(
    viewer: Viewer,
    budget: int,
    now: datetime,
    *,
    own: bool = False,
    seen: Collection[str] = (),
    others: Sequence[Viewer] = (),
) -> Block:
    """Return the context block of a session that starts, at most `budget` tokens. `own`: only what this device wrote.

    `others` are the user's further stores: they give what is pinned and memories, each in its rank. Notes whose id or path
    is in `seen` are left out. An unreadable catalog gives nothing.
    """
    looks = [_Look(one, now, own, seen) for one in (viewer, *others)]
    try:
        quotes: list[Quote] = []
        taken: set[str] = set()
        for quote in _quotes(looks):
            if quote.path not in taken and (not quote.id or quote.id not in taken):
                taken |= {quote.path, quote.id}
                quotes.append(quote)
        made = block("session start", viewer.root, quotes, budget)
        made.total = looks[0].catalog.size()
        return made
    finally:
        for look in looks:
            look.catalog.close()


def key(row: Row) -> str:
    """Return what a note is remembered by in a session: its id, else its path."""
    return str(row.get("id") or row["path"])


def _over(row: Row, now: datetime) -> bool:
    expires = row.get("expires")
    return bool(expires) and str(expires) < now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quotes(looks: Sequence[_Look]) -> Iterator[Quote]:
    here = looks[0]
    yield from _lost_claims(here)
    yield from _handoff(here)
    for look in looks:
        yield from _pinned(look)
    yield from _work(here)
    yield from _messages(here)
    memories = [found for look in looks for found in _memories(look)]
    # Stable: equals stay in the order of their stores.
    for _, look, row in sorted(memories, key=lambda found: found[0])[:SHOWN]:
        yield look.quote(row, "Memories")
    yield from _last_session(here)


def _lost_claims(look: _Look) -> Iterator[Quote]:
    """Yield the open tasks that this agent claimed here and that a merge gave to somebody else."""
    mine = {task: claim for task, claim in look.viewer.claims.items() if claim.partition(" ")[2] == look.viewer.identity}
    if not mine:
        return
    rows = [row for row in look.arrived if row["kind"] == "task" and row.get("id") in mine]
    rows += look.select(f"n.kind = 'task' AND n.id IN ({','.join('?' * len(mine))})", list(mine), "n.updated DESC", 20)
    for row in rows:
        stands = str(fields_of(row).get("claim") or "")
        holder = stands.partition(" ")[2]
        if holder and holder != look.viewer.identity and stands != mine[row["id"]] and (row.get("status") or "open") in _OPEN:
            quote = look.quote(row, "Claims that you lost", 200)
            quote.text = f"You claimed this task; in the merge {holder} got it. Leave it to them, or write to them."
            yield quote


def _newest(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row.get("updated") or ""), reverse=True)


def _handoff(look: _Look) -> Iterator[Quote]:
    rows = [row for row in look.arrived if row.get("type") == HANDOFF]
    rows += look.select(f"n.kind = 'session' AND n.type = '{HANDOFF}'", (), "n.updated DESC", 3)
    for row in _newest(rows)[:1]:
        yield look.quote(row, "Last handoff", 1500)


def _current(row: Row) -> bool:
    return (row.get("status") or "active") == "active"


def _pinned(look: _Look) -> Iterator[Quote]:
    rows = [row for row in look.arrived if row["kind"] == "memory" and (row["pinned"] or row.get("tier") == "core")]
    # The plus keeps SQLite from the index on kinds: most notes are of these, and reading them in order is quicker.
    where = "(n.pinned = 1 OR n.tier = 'core') AND +n.kind IN ('memory', 'entity', 'note')"
    rows += look.select(where, (), "n.pinned DESC, coalesce(n.importance, 0.5) DESC, n.updated DESC", 30)
    for row in filter(_current, rows):
        yield look.quote(row, "Always", 1200)


def _work(look: _Look) -> Iterator[Quote]:
    rows = [row for row in look.arrived if row["kind"] == "task" and (row.get("status") or "open") in _OPEN]
    where = "n.kind = 'task' AND coalesce(n.status, 'open') IN ('open', 'claimed', 'active', 'blocked', 'waiting')"
    rows += look.select(where, (), "n.updated DESC", 60)
    where = "n.kind IN ('entity', 'memory', 'note') AND n.status IN ('blocked', 'waiting')"
    rows += look.select(where, (), "n.updated DESC", 20)

    def order(row: Row) -> tuple[int, int, int]:
        status = str(row.get("status") or "open")
        holder = str(fields_of(row).get("claim") or "").partition(" ")[2]
        mine = status in ("claimed", "active") and holder == look.viewer.identity
        rank = 0 if mine else 1 if status in ("blocked", "waiting") else 2
        return rank, _URGENCY.get(str(row.get("priority") or "").lower(), 2), 0

    for row in sorted(rows, key=order)[:8]:
        quote = look.quote(row, "Open work", 200)
        status = str(row.get("status") or "open")
        blockers = fields_of(row).get("blocked_by")
        names = [blockers] if isinstance(blockers, str) else blockers if isinstance(blockers, list) else []
        by = f", waits for {', '.join(str(name)[:60] for name in names[:4])}" if names else ""
        priority = f", {row['priority']}" if row.get("priority") else ""
        quote.text = f"status: {status}{priority}{by}\n{quote.text}"
        yield quote


def _messages(look: _Look) -> Iterator[Quote]:
    viewer = look.viewer
    rows = [row for row in look.arrived if row["kind"] == "message"]
    rows += look.select("n.kind = 'message'", (), "n.created DESC", 60)
    me = {viewer.agent, viewer.identity, "all"}
    count = 0
    for row in rows:
        fields = fields_of(row)
        to = fields.get("to")
        readers = fields.get("read_by")
        read = [readers] if isinstance(readers, str) else readers if isinstance(readers, list) else []
        addressed = {str(name).lower() for name in to} if isinstance(to, list) else {str(to or "").lower()}
        mine = f"{row.get('agent')}@{row.get('device')}" == viewer.identity
        if mine or not addressed & me or viewer.identity in read:
            continue
        yield look.quote(row, "Unread messages", 400)
        count += 1
        if count == 5:
            return


# How much a memory matters, by what a scan of the table can tell: scope, type, importance, age (half of it at _HALF days).
_WEIGHT = (
    "3.0 * (coalesce(n.scope, '') = ?) + 0.8 * (n.type IN ('preference', 'profile')) + CASE n.type "
    + " ".join(f"WHEN '{name}' THEN {worth}" for name, worth in _WORTH.items())
    + " ELSE 0.6 END + coalesce(n.importance, 0.5) "
    f"+ 1.5 / (1.0 + max(0.0, julianday(?) - coalesce(julianday(n.updated), julianday(?))) / {_HALF})"
)


def _memories(look: _Look) -> list[tuple[float, _Look, Row]]:
    """Return memories with their worth for this project (the least number is the most), best first: by the project's scope, its
    name, its recent files, their type, their age."""
    viewer, catalog, now = look.viewer, look.catalog, look.now
    project = viewer.project
    ours = f"project:{project}" if project else ""
    moment = now.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    scopes = "coalesce(n.scope, '') = ? OR coalesce(n.scope, '') NOT LIKE 'project:%'" if project else "? = ''"
    rows = [row for row in look.arrived if row["kind"] == "memory"]
    where = f"+n.kind = 'memory' AND coalesce(n.status, 'active') = 'active' AND ({scopes})"
    rows += look.select(where, (ours, ours, moment, moment), f"{_WEIGHT} DESC, n.updated DESC, n.path", _CANDIDATES)
    words = [word for word in (project, *(os.path.basename(path) for path in viewer.recent[:6])) if len(word) > 3]
    mentions = catalog.mentions(words, [row["rowid"] for row in rows if row["rowid"] is not None])
    scored = []
    for place, row in enumerate(rows):
        if not _current(row):
            continue
        named = bool(project) and project in str(row.get("title", "")).lower().split()
        extra = 1.5 * named + 1.0 * min(mentions.get(row["rowid"], 0) if row["rowid"] is not None else 0, 2)
        scored.append((-_weight(row, ours, now) - extra, place, row))
    scored.sort(key=lambda found: found[:2])
    return [(worth, look, row) for worth, _, row in scored[:SHOWN]]


def _weight(row: Row, ours: str, now: datetime) -> float:
    """Return the same worth as _WEIGHT."""
    kind = str(row.get("type") or "")
    worth = 3.0 * (bool(ours) and row.get("scope") == ours) + 0.8 * (kind in _GENERAL) + _WORTH.get(kind, 0.6)
    return worth + float(row.get("importance") or 0.5) + 1.5 / (1.0 + _age(row, now) / _HALF)


def _age(row: Row, now: datetime) -> float:
    """Return the age of a note in days; one without a date is new."""
    try:
        moment = datetime.fromisoformat(str(row.get("updated"))[:19]).replace(tzinfo=timezone.utc)
    except ValueError:
        return 0.0
    return max(0.0, (now - moment).total_seconds() / 86400)


def _last_session(look: _Look) -> Iterator[Quote]:
    viewer = look.viewer
    where = f"n.kind = 'session' AND n.scope = ? AND coalesce(n.type, '') != '{HANDOFF}'"
    for row in look.select(where, (viewer.scope,), "n.updated DESC", 2):
        quote = look.quote(row, "Last sessions", 500)
        yield quote
